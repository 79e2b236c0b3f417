// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "fieldpost",
    platforms: [.iOS(.v18), .macOS(.v15)],
    products: [
        .library(name: "Fieldpost", targets: ["Fieldpost"]),
        .library(name: "FieldpostServer", targets: ["FieldpostServer", "FieldpostServerHTTP"]),
        .library(name: "FieldpostTesting", targets: ["FieldpostTesting", "FieldpostSimulation"]),
        .executable(name: "fieldpost", targets: ["fieldpost"]),
    ],
    targets: [
        // C libraries: a module map each, imported by exactly one Swift module.
        .systemLibrary(name: "CFieldpostSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CFieldpostZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CFieldpostCrypto", providers: [.apt(["libssl-dev"])]),
        .target(name: "CFieldpostLinuxIO"),

        // What both sides agree on, and the thin layers over the C libraries.
        .target(name: "FieldpostCore"),
        .target(name: "FieldpostSQLite", dependencies: ["FieldpostCore", "CFieldpostSQLite"]),
        .target(name: "FieldpostGzip", dependencies: ["CFieldpostZlib"]),
        .target(
            name: "FieldpostCrypto",
            dependencies: [
                .target(name: "CFieldpostCrypto", condition: .when(platforms: [.linux, .android]))
            ]
        ),

        .target(name: "Fieldpost", dependencies: ["FieldpostCore", "FieldpostSQLite", "FieldpostGzip"]),

        .target(
            name: "FieldpostServer",
            dependencies: ["FieldpostCore", "FieldpostSQLite", "FieldpostCrypto"]
        ),
        .target(
            name: "FieldpostServerHTTP",
            dependencies: ["FieldpostCore", "FieldpostServer", "FieldpostGzip", "CFieldpostLinuxIO"]
        ),

        .target(
            name: "FieldpostTesting",
            dependencies: ["FieldpostCore", "FieldpostSQLite", "Fieldpost", "FieldpostServer"]
        ),
        .target(
            name: "FieldpostSimulation",
            dependencies: [
                "FieldpostCore", "FieldpostSQLite", "Fieldpost", "FieldpostServer", "FieldpostTesting",
            ]
        ),

        .target(
            name: "FieldpostCLI",
            dependencies: [
                "FieldpostCore", "FieldpostSQLite", "FieldpostGzip", "FieldpostCrypto", "Fieldpost",
                "FieldpostServer", "FieldpostServerHTTP", "FieldpostTesting", "FieldpostSimulation",
            ]
        ),
        .executableTarget(name: "fieldpost", dependencies: ["FieldpostCLI"]),

        .testTarget(name: "FieldpostCoreTests", dependencies: ["FieldpostCore"]),
        .testTarget(
            name: "FieldpostSQLiteTests",
            dependencies: ["FieldpostSQLite", "FieldpostGzip", "FieldpostCrypto"]
        ),
        .testTarget(
            name: "FieldpostTests",
            dependencies: [
                "CFieldpostSQLite", "FieldpostCore", "FieldpostSQLite", "FieldpostGzip", "Fieldpost",
                "FieldpostTesting", "FieldpostServer",
            ],
            exclude: ["Fixtures", "REST/Fixtures"]
        ),
        .testTarget(name: "FieldpostServerTests", dependencies: ["FieldpostServer", "FieldpostTesting"]),
        .testTarget(
            name: "FieldpostServerHTTPTests",
            dependencies: ["FieldpostServerHTTP", "FieldpostServer", "Fieldpost", "FieldpostTesting"]
        ),
        .testTarget(
            name: "FieldpostSimulationTests",
            dependencies: ["FieldpostSimulation", "FieldpostTesting"]
        ),
        .testTarget(
            name: "FieldpostCLITests",
            dependencies: ["FieldpostCLI", "FieldpostSQLite", "FieldpostTesting"]
        ),
    ],
    swiftLanguageModes: [.v6]
)
// CI turns warnings into errors; a user of the package is not stopped by a newer compiler's warning.
let strict = Context.environment["FIELDPOST_STRICT"] == "1"
let cTargets: Set = ["CFieldpostLinuxIO"]
for target in package.targets where target.type != .system && !cTargets.contains(target.name) {
    target.swiftSettings =
        [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            .enableUpcomingFeature("InferIsolatedConformances"),
        ] + (strict ? [.treatAllWarnings(as: .error)] : [])
}
