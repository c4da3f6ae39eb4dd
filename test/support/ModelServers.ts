/** All model servers of tests: one for each profile that has rules of its own. */
import { chatServers } from "./servers/ChatServers.ts"
import type { ModelServer } from "./servers/ModelServer.ts"
import { nativeServers } from "./servers/NativeServers.ts"

export { type Action, type ModelServer, type Running, start, window } from "./servers/ModelServer.ts"

export const modelServers: ReadonlyArray<ModelServer> = [...nativeServers, ...chatServers]
