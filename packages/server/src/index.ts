/**
 * The public API of `@daybook/server`; everything else is internal.
 *
 * @module @daybook/server
 */
export * as Asks from "./shared/Asks.ts"
export { type BackendServices } from "./socket/Backend.ts"
export { SocketBusy, SocketUnusable } from "./socket/Listener.ts"
export {
  NameTaken,
  serve,
  ServeFailed,
  type ServedAgent,
  type ServedModel,
  type ServedSocket,
  type ServeOptions
} from "./socket/SessionSocket.ts"
export * as Wire from "./socket/Wire.ts"
