// swift-tools-version: 5.9
// The iOS sample; it stands here because a package takes no sources from outside its folder.
import PackageDescription

let package = Package(
    name: "Translate",
    platforms: [.iOS(.v16)],
    products: [.library(name: "Translate", targets: ["Translate"])],
    targets: [
        .binaryTarget(name: "CLiteRT", path: "ios/CLiteRT.xcframework"),
        .binaryTarget(name: "sentencepiece", path: "ios/sentencepiece.xcframework"),
        .target(name: "Native", dependencies: ["CLiteRT", "sentencepiece"], path: "native", exclude: ["main.cpp"], publicHeadersPath: "."),
        .target(name: "Translate", dependencies: ["Native"], path: "ios", sources: ["Translate.swift"], swiftSettings: [.interoperabilityMode(.Cxx)]),
    ],
    cxxLanguageStandard: .cxx17
)
