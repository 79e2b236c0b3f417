// swift-tools-version: 6.2
import PackageDescription

// Sees the public API alone, as an app does.
let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "fieldpost", path: "..")],
    targets: [
        .executableTarget(
            name: "StoreBench",
            dependencies: [.product(name: "Fieldpost", package: "fieldpost")]
        ),
        .executableTarget(
            name: "OutboxBench",
            dependencies: [.product(name: "Fieldpost", package: "fieldpost")]
        ),
        .executableTarget(
            name: "ServerBench",
            dependencies: [.product(name: "FieldpostServer", package: "fieldpost")]
        ),
    ],
    swiftLanguageModes: [.v6]
)
