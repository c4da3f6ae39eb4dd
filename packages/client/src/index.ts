/**
 * The public API of `@daybook/client`.
 *
 * @module @daybook/client
 */
export { ServerUnreachable, UnexpectedAnswer } from "./ClientError.ts"
