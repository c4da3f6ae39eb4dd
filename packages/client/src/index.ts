/**
 * The public API of `@daybook/client`.
 *
 * @module @daybook/client
 */
export { ConnectionError, ServerUnreachable, UnexpectedAnswer } from "./connection/ClientError.ts"
export * as Consumer from "./Consumer.ts"
export { DaybookClient, layer, make, type Measuring, type Options } from "./DaybookClient.ts"
export type { Item } from "./events/Following.ts"
export { shellTypes } from "@daybook/log/events/LiveShellEvents"
export type { FollowOptions } from "./Streams.ts"
