// The native functions of Translator.kt. Texts are bytes of UTF-8, as JNI's own strings write emoji otherwise.
#include <jni.h>

#include "translator.h"

namespace {
std::string text_of(JNIEnv* env, jbyteArray bytes) {
  std::string text(env->GetArrayLength(bytes), '\0');
  env->GetByteArrayRegion(bytes, 0, text.size(), reinterpret_cast<jbyte*>(text.data()));
  return text;
}

void fail(JNIEnv* env, const std::exception& error) { env->ThrowNew(env->FindClass("java/lang/IllegalStateException"), error.what()); }
}  // namespace

extern "C" JNIEXPORT jlong JNICALL Java_sample_translate_Translator_open(JNIEnv* env, jobject, jbyteArray folder) try {
  return reinterpret_cast<jlong>(new Translator(text_of(env, folder)));
} catch (const std::exception& error) {
  fail(env, error);
  return 0;
}

extern "C" JNIEXPORT jbyteArray JNICALL Java_sample_translate_Translator_translate(JNIEnv* env, jobject, jlong translator, jbyteArray sentence) try {
  const std::string found = reinterpret_cast<Translator*>(translator)->translate(text_of(env, sentence));
  jbyteArray bytes = env->NewByteArray(found.size());
  env->SetByteArrayRegion(bytes, 0, found.size(), reinterpret_cast<const jbyte*>(found.data()));
  return bytes;
} catch (const std::exception& error) {
  fail(env, error);
  return nullptr;
}
