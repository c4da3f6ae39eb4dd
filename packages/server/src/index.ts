/**
 * The public API of `@daybook/server`; everything else is internal.
 *
 * @module @daybook/server
 */
export * as Asks from "./ask/Asks.ts"
export { type BackendServices } from "./session/Backend.ts"
export { SocketBusy, SocketUnusable } from "./socket/Listener.ts"
export {
  NameTaken,
  serve,
  ServeFailed,
  type ServedAgent,
  type ServedModel,
  type ServedSocket,
  type ServeOptions
} from "./SessionSocket.ts"
export * as Wire from "./wire/Wire.ts"
