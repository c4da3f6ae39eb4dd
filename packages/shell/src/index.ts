/**
 * Live shells for agents.
 *
 * @module @daybook/shell
 */
export * as Background from "./Background.ts"
export * as Checkpoints from "./checkpoint/Checkpoints.ts"
export * as ExecResult from "./domain/ExecResult.ts"
export * as LineBudget from "./output/LineBudget.ts"
export * as OutputPipeline from "./output/OutputPipeline.ts"
export * as Policy from "./policy/Policy.ts"
export * as RedactionStream from "./output/RedactionStream.ts"
export * as ShellError from "./domain/ShellError.ts"
export * as ShellList from "./record/ShellList.ts"
export * as ShellRecord from "./record/ShellRecord.ts"
export * as Target from "./domain/Target.ts"
export * as OutputStore from "./output/OutputStore.ts"
export * as ShellOptions from "./ShellOptions.ts"
export * as Shells from "./Shells.ts"
export * as Transports from "./transport/Transports.ts"
