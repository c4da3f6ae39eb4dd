/**
 * The open requests of each connection. A client may send some before it has read the answers, which wait behind each other: Node
 * keeps them in memory, and does not close those that wait when their connection ends. Spec: HT-26 in specs/http.md.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

export interface Pipelines {
  /** Begins a request. False for one too many, which ends its connection; it gets no answer. */
  readonly begin: (request: IncomingMessage, response: ServerResponse) => boolean
}

/** Bounds the open requests of a connection. */
export const make = (most: number): Pipelines => {
  const connections = new WeakMap<Socket, Set<ServerResponse>>()
  const openOf = (socket: Socket): Set<ServerResponse> => {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const open = new Set<ServerResponse>()
    connections.set(socket, open)
    socket.once("close", () => {
      for (const response of open) {
        response.destroy()
        response.emit("close")
      }
    })
    return open
  }
  return {
    begin: ({ socket }, response) => {
      const open = openOf(socket)
      // Requests that were parsed together come here even after their connection was ended.
      if (socket.destroyed || open.size >= most) {
        socket.destroy()
        return false
      }
      open.add(response)
      response.once("close", () => open.delete(response))
      return true
    }
  }
}
