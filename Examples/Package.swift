// swift-tools-version: 6.2
import PackageDescription

// Programs of somebody else: they see the public API alone.
let package = Package(
    name: "examples",
    platforms: [.iOS(.v18), .macOS(.v15)],
    dependencies: [.package(name: "fieldpost", path: "..")],
    targets: [
        .executableTarget(
            name: "FieldNotes",
            dependencies: [.product(name: "Fieldpost", package: "fieldpost")]
        )
    ],
    swiftLanguageModes: [.v6]
)
