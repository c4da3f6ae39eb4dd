/**
 * The public API of `@daybook/client`.
 *
 * @module @daybook/client
 */
export { ConnectionError, ServerUnreachable, UnexpectedAnswer } from "./connection/ClientError.ts"
export * as Consumer from "./Consumer.ts"
export { DaybookClient, layer, make, type Options } from "./DaybookClient.ts"
export type { Item } from "./events/Following.ts"
export type { FollowOptions } from "./Streams.ts"
