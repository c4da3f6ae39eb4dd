/** The public API of `@daybook/server`; everything else is internal. */
export * as Asks from "./Asks.ts"
export { type BackendServices } from "./Backend.ts"
export { SocketBusy, SocketUnusable } from "./Listener.ts"
export {
  NameTaken,
  serve,
  ServeFailed,
  type ServedAgent,
  type ServedModel,
  type ServedSocket,
  type ServeOptions
} from "./SessionSocket.ts"
export * as Wire from "./Wire.ts"
