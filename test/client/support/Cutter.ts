/** A TCP proxy that breaks connections. */
import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

export interface Cutter {
  readonly url: string
  /** Connections so far. */
  readonly connections: () => number
  /** Breaks all connections. */
  readonly cut: Effect.Effect<void>
}

/**
 * Listens on a free port and passes bytes to the server at `url`. `budget` gives the bytes of answers after which each
 * connection breaks, possibly within a frame, by its number and its first request; undefined lets it live.
 */
export const make = (
  url: string,
  budget: (connection: number, request: string) => number | undefined
): Effect.Effect<Cutter, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly cutter: Cutter; readonly close: () => void }>((resume) => {
      const target = new URL(url)
      const open = new Set<Socket>()
      let connections = 0
      const server = createServer((near) => {
        const far = connect(Number(target.port), target.hostname)
        const number = connections
        connections += 1
        let left = Number.POSITIVE_INFINITY
        near.once("data", (request) => (left = budget(number, String(request)) ?? left))
        const both = [near, far]
        const end = () => {
          for (const each of both) {
            each.destroy()
            open.delete(each)
          }
        }
        for (const each of both) {
          open.add(each)
          each.on("error", end).on("close", end)
        }
        near.pipe(far)
        far.on("data", (bytes) => {
          if (bytes.length < left) {
            left -= bytes.length
            near.write(bytes)
          } else near.write(bytes.subarray(0, left), end)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const cut = () => {
          for (const each of open) each.destroy()
        }
        resume(
          Effect.succeed({
            cutter: { url: `http://127.0.0.1:${port}`, connections: () => connections, cut: Effect.sync(cut) },
            close: () => {
              cut()
              server.close()
            }
          })
        )
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ cutter }) => cutter))
