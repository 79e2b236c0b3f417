internal import FieldpostCLI
internal import Foundation

exit(await FieldpostTool.main())
