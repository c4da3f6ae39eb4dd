/**
 * The public API of `@daybook/conformance`.
 *
 * @module @daybook/conformance
 */
export { type Law, laws } from "./Laws.ts"
export type { Target } from "./Kit.ts"
export { holds, json, line, type Options, report, summary, type Verdict, verify } from "./Verdict.ts"
