package sample.translate

import android.app.Activity
import android.os.Bundle
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.TextView
import java.io.File
import java.util.concurrent.Executors
import java.util.concurrent.Future

/** A field to type a sentence into, and its translation when the field's action is pressed. */
class MainActivity : Activity() {
    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        val translator = opened ?: worker.submit<Translator> { Translator(unpacked("model").path) }.also { opened = it }
        val source = EditText(this).apply { isSingleLine = true }
        val target = TextView(this)
        source.setOnEditorActionListener { _, _, _ ->
            val sentence = source.text.toString()
            worker.execute {
                val translation = translator.get().translate(sentence)
                runOnUiThread { target.text = translation }
            }
            true
        }
        setContentView(LinearLayout(this).apply {
            orientation = LinearLayout.VERTICAL
            addView(source)
            addView(target)
        })
    }

    /** A folder of the assets as files, which LiteRT and SentencePiece read. */
    private fun unpacked(name: String): File {
        val folder = File(filesDir, name).apply { mkdirs() }
        for (file in assets.list(name)!!) {
            assets.open("$name/$file").use { input -> File(folder, file).outputStream().use { input.copyTo(it) } }
        }
        return folder
    }

    private companion object {  // of the app: a rotation makes a new activity
        val worker = Executors.newSingleThreadExecutor()
        var opened: Future<Translator>? = null
    }
}
