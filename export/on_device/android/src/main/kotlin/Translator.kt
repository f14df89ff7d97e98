package sample.translate

/** Translates sentences with the static LiteRT export in a folder; one thread at a time. It stays open as long as the app. */
class Translator(folder: String) {
    private val address = open(folder.toByteArray())

    fun translate(sentence: String): String = String(translate(address, sentence.toByteArray()))

    private external fun open(folder: ByteArray): Long

    private external fun translate(address: Long, sentence: ByteArray): ByteArray

    companion object {
        init {
            System.loadLibrary("translate")
        }
    }
}
