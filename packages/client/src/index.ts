/**
 * The public API of `@daybook/client`.
 *
 * @module @daybook/client
 */
export { ConnectionError, ServerUnreachable, UnexpectedAnswer } from "./ClientError.ts"
export * as Consumer from "./Consumer.ts"
export {
  DaybookClient,
  type DaybookClientService,
  layer,
  make,
  type Options,
  type StatsScope
} from "./DaybookClient.ts"
export type { Item } from "./Streams.ts"
export { shellTypes } from "@daybook/log/events/LiveShellEvents"
export type { FollowOptions } from "./Streams.ts"
