/** A proxy before the server that loses connections: whole, at a commit, or at the next statement. */
import { connect, createServer, type Server, type Socket } from "node:net"
import { Effect, Queue } from "effect"

/**
 * What is lost, with its connection: the answer to the next commit, the next commit, or whatever a client sends next. What a
 * client sends does not reach the server then; a late commit reaches it before the next transaction begins.
 */
export type Loss = "answer" | "commit" | "late" | "statement"

export interface Proxy {
  /** The address of the server through the proxy. */
  readonly url: string
  /** Loses the next one, or the one after so many. */
  readonly lose: (loss: Loss, after?: number) => void
  /** Loses the answer to the next client that asks what became of its commit. */
  readonly loseOutcome: () => void
  /** How often a client sent something in each transaction that it committed. */
  readonly trips: ReadonlyArray<number>
  /**
   * Ends the next transaction on the server when it has read the heads. The client learns that with their answer, which comes
   * after the effect.
   */
  readonly endBegun: (before: () => Promise<unknown>) => void
  /** Each connection that was refused. */
  readonly refused: Queue.Dequeue<void>
  /** Cuts all connections, and refuses new ones. */
  readonly cut: () => void
  /** Holds back what comes, in both directions, on all connections. */
  readonly hold: () => void
  /** Lets connections be made, and everything through. */
  readonly mend: () => void
}

/** A server that is ready, in a transaction. */
const readyInTransaction = "Z\0\0\0\x05T"

const fields = Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0")

/** The server's last words on a connection that it ends. */
const terminated = Buffer.concat([
  Buffer.from("E"),
  Buffer.from(Uint32Array.of(fields.length + 4).buffer).swap32(),
  fields
])

const listening = (server: Server) =>
  new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve(typeof address === "object" && address !== null ? address.port : 0)
    })
  )

export const make = (url: string) =>
  Effect.acquireRelease(
    Effect.flatMap(Queue.unbounded<void>(), (refused) =>
      Effect.promise(async () => {
        const target = new URL(url)
        const [serverPort, host] = [Number(target.port), target.hostname]
        const open = new Set<Socket>()
        const trips: Array<number> = []
        let between: (() => Promise<unknown>) | undefined
        let late: (() => Promise<unknown>) | undefined
        let isOutcomeLost = false
        let [loss, left, isCut, isHeld]: [Loss | undefined, number, boolean, boolean] = [undefined, 0, false, false]

        const server = createServer((client) => {
          if (isCut) {
            refused.unsafeOffer(undefined)
            return client.destroy()
          }
          const upstream = connect(serverPort, host)
          const end = () => {
            client.destroy()
            upstream.destroy()
          }
          let sent = 0
          /** The answer that is lost, and with it the connection. */
          let unheard: string | undefined
          let answers: Buffer | undefined
          for (const socket of [client, upstream]) {
            open.add(socket)
            socket.setNoDelay(true)
            socket.on("error", end)
            socket.on("close", () => {
              open.delete(socket)
              end()
            })
          }
          client.on("data", (chunk) => {
            sent = chunk.includes("BEGIN\0") ? 1 : sent + 1
            if (chunk.includes("COMMIT\0")) trips.push(sent)
            if (chunk.includes("BEGIN\0") && between !== undefined) answers = Buffer.alloc(0)
            const isLost = loss !== undefined && (loss === "statement" || chunk.includes("COMMIT\0")) && (left -= 1) < 0
            const lost = isLost ? loss : undefined
            if (lost !== undefined) loss = undefined
            if (lost === "commit" || lost === "statement") return end()
            if (lost === "answer") unheard = "COMMIT\0"
            if (isOutcomeLost && chunk.includes("RETURNING number")) {
              isOutcomeLost = false
              unheard = "INSERT 0 1\0"
            }
            if (lost === "late") {
              late = () => new Promise((resolve) => upstream.once("close", resolve).end(chunk))
              upstream.removeAllListeners("data").resume()
              client.removeAllListeners("close").destroy()
              return
            }
            if (late !== undefined && chunk.includes("BEGIN\0")) {
              const arrives = late
              late = undefined
              void arrives().then(() => upstream.write(chunk))
              return
            }
            upstream.write(chunk)
          })
          upstream.on("data", (chunk) => {
            if (answers !== undefined) {
              answers = Buffer.concat([answers, chunk])
              // BEGIN, the last position, the heads.
              if (answers.toString("latin1").split(readyInTransaction).length <= 3) return
              const [all, before] = [answers, between]
              answers = between = undefined
              upstream.removeAllListeners("close").destroy()
              void before?.().then(() => client.end(Buffer.concat([all, terminated])))
              return
            }
            if (unheard === undefined) return client.write(chunk)
            if (chunk.includes(unheard)) end()
          })
          if (isHeld) for (const socket of [client, upstream]) socket.pause()
        })
        const port = await listening(server)
        target.port = String(port)
        const proxy: Proxy = {
          url: target.toString(),
          trips,
          endBegun: (before) => {
            between = before
          },
          refused,
          loseOutcome: () => {
            isOutcomeLost = true
          },
          lose: (next, after = 0) => {
            loss = next
            left = after
          },
          cut: () => {
            isCut = true
            for (const socket of open) socket.destroy()
          },
          hold: () => {
            isHeld = true
            for (const socket of open) socket.pause()
          },
          mend: () => {
            isCut = false
            isHeld = false
            for (const socket of open) socket.resume()
          }
        }
        return { proxy, server, open }
      })
    ),
    ({ open, server }) =>
      Effect.promise(async () => {
        for (const socket of open) socket.destroy()
        await new Promise((resolve) => server.close(resolve))
      })
  ).pipe(Effect.map(({ proxy }) => proxy))
