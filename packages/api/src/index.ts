/**
 * The public API of `@daybook/api`.
 *
 * @module @daybook/api
 */
export * as Access from "./Access.ts"
export { Api } from "./Api.ts"
export * as Cursor from "./Cursor.ts"
export * as EventFrames from "./EventFrames.ts"
export * as Failure from "./Failure.ts"
