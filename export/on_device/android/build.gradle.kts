plugins {
    id("com.android.application") version "8.7.3"
    id("org.jetbrains.kotlin.android") version "2.0.21"
}

kotlin { jvmToolchain(17) }

android {
    namespace = "sample.translate"
    compileSdk = 35
    defaultConfig {
        minSdk = 26
        ndk { abiFilters += "arm64-v8a" }
    }
    externalNativeBuild { cmake { path = file("CMakeLists.txt") } }
}
