/**
 * The public API of `@daybook/api`.
 *
 * @module @daybook/api
 */
export * as Access from "./wire/Access.ts"
export { Api } from "./Api.ts"
export * as Cursor from "./wire/Cursor.ts"
export * as EventFrames from "./wire/EventFrames.ts"
export * as Failure from "./wire/Failure.ts"
