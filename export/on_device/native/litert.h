// The functions of LiteRT's C API (2.2 or newer) that translator.cpp calls: LiteRT's packages for Python and Android have the
// library without headers. They are documented in litert/c of LiteRT's repository.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct LiteRtTensorType {  // LiteRtRankedTensorType
  int32_t element_type;
  uint32_t rank : 7, has_strides : 1;
  int32_t dimensions[8];
  uint32_t strides[8];
};
enum { kCpu = 1, kHostMemory = 1, kRead = 0, kWrite = 1 };

typedef struct LiteRtEnvironmentT* LiteRtEnvironment;
typedef struct LiteRtModelT* LiteRtModel;
typedef struct LiteRtOptionsT* LiteRtOptions;
typedef struct LiteRtCompiledModelT* LiteRtCompiledModel;
typedef struct LiteRtSignatureT* LiteRtSignature;
typedef struct LiteRtTensorT* LiteRtTensor;
typedef struct LiteRtTensorBufferT* LiteRtTensorBuffer;

int LiteRtCreateEnvironment(int count, const void* options, LiteRtEnvironment*);
int LiteRtCreateModelFromFile(LiteRtEnvironment, const char* path, LiteRtModel*);
int LiteRtCreateOptions(LiteRtOptions*);
int LiteRtSetOptionsHardwareAccelerators(LiteRtOptions, int accelerators);
int LiteRtCreateCompiledModel(LiteRtEnvironment, LiteRtModel, LiteRtOptions, LiteRtCompiledModel*);
int LiteRtGetNumModelSignatures(LiteRtModel, size_t* count);
int LiteRtGetModelSignature(LiteRtModel, size_t index, LiteRtSignature*);
int LiteRtGetSignatureKey(LiteRtSignature, const char** name);
int LiteRtGetNumSignatureInputs(LiteRtSignature, size_t* count);
int LiteRtGetNumSignatureOutputs(LiteRtSignature, size_t* count);
int LiteRtGetSignatureInputName(LiteRtSignature, size_t index, const char** name);
int LiteRtGetSignatureOutputName(LiteRtSignature, size_t index, const char** name);
int LiteRtGetSignatureInputTensorByIndex(LiteRtSignature, size_t index, LiteRtTensor*);
int LiteRtGetSignatureOutputTensorByIndex(LiteRtSignature, size_t index, LiteRtTensor*);
int LiteRtGetRankedTensorType(LiteRtTensor, LiteRtTensorType*);
int LiteRtCreateManagedTensorBuffer(LiteRtEnvironment, int kind, const LiteRtTensorType*, size_t bytes, LiteRtTensorBuffer*);
int LiteRtLockTensorBuffer(LiteRtTensorBuffer, void** memory, int mode);
int LiteRtUnlockTensorBuffer(LiteRtTensorBuffer);
int LiteRtRunCompiledModel(LiteRtCompiledModel, size_t signature, size_t inputs, LiteRtTensorBuffer*, size_t outputs, LiteRtTensorBuffer*);
}
