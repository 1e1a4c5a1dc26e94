// LLVM's code generator with a choice of its passes, and what the choice depends on.
//
// The C API generates code with all passes. All that LLVM offers to leave some out are options of the process, which would change code
// for AMD too, and that of whoever else uses LLVM in it. Here nothing outlives a call.

#include "llvm-c/Core.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <vector>

using namespace llvm;

namespace {

// Hands passes on to a pass manager, but for those that it was told to leave out.
class Choice final : public legacy::PassManagerBase {
public:
  Choice(legacy::PassManagerBase &manager, ArrayRef<const char *> without)
      : manager(manager), without(without), met(without.size()) {}

  void add(Pass *pass) override {
    if (const PassInfo *info = Pass::lookupPassInfo(pass->getPassID()))
      for (size_t index = 0; index < without.size(); ++index)
        if (info->getPassArgument() == without[index]) {
          met[index] = true;
          delete pass;
          return;
        }
    manager.add(pass);
  }

  // A pass to leave out that was none; null where there is none such.
  const char *missed() const {
    for (size_t index = 0; index < without.size(); ++index)
      if (!met[index])
        return without[index];
    return nullptr;
  }

private:
  legacy::PassManagerBase &manager;
  ArrayRef<const char *> without;
  std::vector<bool> met;
};

// Whether an address of global memory, or of one not known, goes up by the same amount with each turn of the loop.
bool stepsThroughMemory(const Loop &loop, ScalarEvolution &evolution) {
  for (const BasicBlock *block : loop.blocks())
    for (const Instruction &instruction : *block) {
      const auto *address = dyn_cast<GetElementPtrInst>(&instruction);
      if (!address || address->getPointerAddressSpace() > 1 || address->getType()->isVectorTy())
        continue;
      const auto *steps = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(const_cast<GetElementPtrInst *>(address)));
      if (steps && steps->getLoop() == &loop)
        return true;
    }
  return false;
}

} // namespace

// Whether some instruction gives a number of 8 or 16 bits, of which registers of 32 bits hold several.
extern "C" bool lacewing_has_narrow_numbers(LLVMModuleRef module) {
  for (const Function &function : *unwrap(module))
    for (const BasicBlock &block : function)
      for (const Instruction &instruction : block) {
        const Type &type = *instruction.getType();
        if (type.is16bitFPTy() || type.isIntegerTy(16) || type.isIntegerTy(8))
          return true;
      }
  return false;
}

// How many instructions the module has.
extern "C" size_t lacewing_instruction_count(LLVMModuleRef module) { return unwrap(module)->getInstructionCount(); }

// Whether some innermost loop of the module's functions steps through global memory.
extern "C" bool lacewing_loops_step_through_memory(LLVMModuleRef module) {
  const TargetLibraryInfoImpl library(unwrap(module)->getTargetTriple());
  for (Function &function : *unwrap(module)) {
    if (function.isDeclaration())
      continue;
    DominatorTree dominators(function);
    LoopInfo loops(dominators);
    AssumptionCache assumptions(function);
    TargetLibraryInfo known(library);
    ScalarEvolution evolution(function, known, assumptions, dominators, loops);
    for (const Loop *loop : loops.getLoopsInPreorder())
      if (loop->isInnermost() && stepsThroughMemory(*loop, evolution))
        return true;
  }
  return false;
}

// Generates assembly without the passes that `without` names by their arguments on LLVM's command line. Gives null; or what is wrong,
// a static string or one of `without`, and no assembly.
extern "C" const char *lacewing_assembly(LLVMTargetMachineRef machine, LLVMModuleRef module, const char *const *without,
                                         size_t count, LLVMMemoryBufferRef *assembly) {
  SmallString<0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager manager;
  Choice choice(manager, ArrayRef(without, count));
  auto &target = *reinterpret_cast<TargetMachine *>(machine);
  if (target.addPassesToEmitFile(choice, stream, nullptr, CodeGenFileType::AssemblyFile))
    return "LLVM makes no assembly for this target";
  if (const char *missed = choice.missed())
    return missed;
  manager.run(*unwrap(module));
  *assembly = LLVMCreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "");
  return nullptr;
}
