// swift-tools-version: 6.2
import PackageDescription

// An app of somebody else: it sees the public API of the client, and must link no library of the server.
let package = Package(
    name: "client-only",
    platforms: [.iOS(.v18), .macOS(.v15)],
    dependencies: [.package(name: "fieldpost", path: "../..")],
    targets: [
        .executableTarget(
            name: "ClientOnly",
            dependencies: [.product(name: "Fieldpost", package: "fieldpost")]
        )
    ],
    swiftLanguageModes: [.v6]
)
