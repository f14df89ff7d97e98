import CxxStdlib
import Native

/// Translates sentences with the static LiteRT export in a folder, such as `Bundle.main.path(forResource: "model", ofType: nil)`.
public actor SentenceTranslator {
    private var translator: Translator

    public init(folder: String) {
        translator = Translator(std.string(folder))
    }

    public func translate(_ sentence: String) -> String {
        String(translator.translate(std.string(sentence)))
    }
}
