/**
 * The public API of `@daybook/client`.
 *
 * @module @daybook/client
 */
export { Api } from "@daybook/api"
