/**
 * Finds connections whose peer has vanished without a word, such as a machine that lost its power: the system sends the same bytes
 * again, and nothing comes back. Node sets no limit to that, and Linux gives up after a quarter of an hour. Linux tells in
 * `/proc/net/tcp` how often it has sent them; on another system its own limit holds. Spec: HT-38 in specs/http.md.
 */
import { readFile } from "node:fs/promises"
import type { Server, Socket } from "node:net"
import { endianness } from "node:os"
import { Duration, Effect, type Scope } from "effect"

/** An end of a connection. */
export interface Peer {
  readonly address: string
  readonly port: number
}

/** Milliseconds before Linux sends bytes again for the first time, at least; each further time it waits twice as long. */
const firstWait = 200

/** How often bytes are sent again within this time. */
const repeatsIn = (time: Duration.Duration): number => Math.floor(Math.log2(Duration.toMillis(time) / firstWait + 1))

const files = ["/proc/net/tcp", "/proc/net/tcp6"]

/** One text for each address. */
const normal = (address: string): string => (address.includes(":") ? new URL(`http://[${address}]`).hostname : address)

/** The address of a row: words of four bytes, each in the order of the machine. */
const addressOf = (hex: string): string => {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => {
    const each = [...Buffer.from(word, "hex")]
    return endianness() === "LE" ? each.toReversed() : each
  })
  if (bytes.length === 4) return bytes.join(".")
  return normal((Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? []).join(":"))
}

/** The peers of this port's established connections to which the same bytes were sent again so often. */
export const vanished = (table: string, port: number, repeats: number): ReadonlyArray<Peer> => {
  const local = port.toString(16).toUpperCase().padStart(4, "0")
  const rows = new RegExp(String.raw`^ *\d+: \w+:${local} (\w+):(\w{4}) 01 \S+ \S+ (\w{8}) `, "gm")
  return [...table.matchAll(rows)].flatMap(([, address = "", remote = "", sent = ""]) =>
    Number.parseInt(sent, 16) < repeats ? [] : [{ address: addressOf(address), port: Number.parseInt(remote, 16) }]
  )
}

/** Closes the server's connections whose peer acknowledges nothing for about this time, until the scope closes. */
export const closing = (
  server: Server,
  port: number,
  within: Duration.Duration
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    server.on("connection", (socket: Socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    })
    const close = async () => {
      for (const file of files) {
        const peers = vanished(await readFile(file, "latin1"), port, repeatsIn(within))
        if (peers.length === 0) continue
        for (const socket of sockets) {
          const { remoteAddress = "", remotePort } = socket
          if (peers.some(({ address, port }) => port === remotePort && address === normal(remoteAddress)))
            socket.destroy()
        }
      }
    }
    const look = Effect.suspend(() => (sockets.size === 0 ? Effect.void : Effect.ignore(Effect.tryPromise(close))))
    yield* Effect.forkScoped(Effect.forever(Effect.delay(look, Duration.times(within, 0.5))))
  })
