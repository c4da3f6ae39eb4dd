/**
 * The public API of `@daybook/discord`.
 *
 * @module @daybook/discord
 */
export { nonceOf, type PostKey } from "./post/Nonce.ts"
