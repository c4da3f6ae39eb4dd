/**
 * Over real sockets. How long something waits is nowhere measured: bounds hold at every instant, and are looked at after
 * other clients were served many times.
 */
import { createServer, type Socket } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Queue, Scope, Stream, TestClock } from "effect"
import { type Connection, makeConnection } from "../../packages/server/src/socket/Listener.ts"
import type { Line } from "../../packages/server/src/socket/Request.ts"
import { encodeFrame } from "../../packages/server/src/socket/Wire.ts"
import { type Client, connectTo } from "./support/Client.ts"
import { temporaryFolder } from "./support/Folder.ts"
import { answerPongs } from "./support/Pong.ts"

/** Pairs of a client and the server's side of its socket. */
const makeServer = Effect.gen(function* () {
  const path = join(yield* temporaryFolder, "s")
  const sockets = yield* Queue.unbounded<Socket>()
  yield* Effect.acquireRelease(
    Effect.async<ReturnType<typeof createServer>>((resume) => {
      const server = createServer({ allowHalfOpen: true }, (socket) => Queue.unsafeOffer(sockets, socket))
      server.listen(path, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )
  const accept = Effect.zip(connectTo(path), Queue.take(sockets))
  const pair = Effect.gen(function* () {
    const [client, socket] = yield* accept
    return { client, socket, connection: yield* makeConnection(socket, 1) }
  })
  return { accept, pair }
})

/** Another client is served, many times. */
const serveOthers = (client: Client) =>
  Effect.forEach(
    Array.from({ length: 50 }, (_, at) => at),
    (at) =>
      Effect.gen(function* () {
        yield* client.send(`{"op":"ping","id":"p${at}"}\n`)
        assert.deepStrictEqual(yield* client.next, { type: "pong", id: `p${at}` })
      })
  )

/** Fibers that have all begun, in order. */
const forkAll = <A, E>(count: number, effect: (at: number) => Effect.Effect<A, E>) =>
  Effect.forEach(
    Array.from({ length: count }, (_, at) => at),
    (at) => Effect.zipLeft(Effect.fork(effect(at)), Effect.yieldNow())
  )

const shown = (line: Line) => (line._tag === "Line" ? new TextDecoder().decode(line.bytes) : line._tag)
const lines = (connection: Connection) =>
  Effect.map(Stream.runCollect(Stream.map(connection.lines, shown)), (all) => [...all])

const run = `ctx-${"0".repeat(32)}`
const frameOf = (writer: number, at: number, size = 65_000) =>
  encodeFrame({ type: "delta", id: `w${writer}`, run, text: `${at}${"x".repeat(size)}` })

it.scoped("FR-3: a client that only sends and then ends its side is read to the end, and gets its answers", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    yield* client.send('{"op":"ping"}\r\n{"op":"ping","id":"last"}')
    yield* client.end
    yield* answerPongs(connection)
    yield* connection.finish
    assert.deepStrictEqual(yield* client.rest, [{ type: "pong" }, { type: "pong", id: "last" }])
  })
)

it.scoped("FR-4: after a line too long the connection goes on with the next", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    const answering = yield* Effect.fork(answerPongs(connection))
    yield* client.send(`${"x".repeat(3_000_000)}\n{"op":"ping"}\n`)
    assert.deepInclude(yield* client.next, { type: "error", code: "EMSGSIZE" })
    assert.deepStrictEqual(yield* client.next, { type: "pong" })
    yield* Fiber.interrupt(answering)
  })
)

it.scoped("FR-6: a client that does not read holds back only its own writer, and gets every byte when it reads", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const [slow, other] = [yield* pair, yield* pair]
    slow.client.socket.pause()
    yield* Effect.forkScoped(answerPongs(other.connection))
    let written = 0
    const count = 1600
    const writing = yield* Effect.fork(
      Effect.forEach(
        Array.from({ length: count }, (_, at) => at),
        (at) => Effect.tap(slow.connection.write(frameOf(0, at)), () => Effect.sync(() => written++))
      )
    )
    yield* serveOthers(other.client)
    // The system's buffers and one frame: of 100 MB, a few hundred KB.
    assert.isBelow(written, 32)
    assert.isBelow(slow.socket.writableLength, 100_000)
    slow.client.socket.resume()
    for (let at = 0; at < count; at++) {
      const frame = yield* slow.client.next
      assert.deepInclude(frame, { type: "delta", text: `${at}${"x".repeat(65_000)}` })
    }
    yield* Fiber.join(writing)
    assert.strictEqual(written, count)
  })
)

it.scoped("FR-6: several writers take turns, and no frame is torn", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    client.socket.pause()
    const [writers, each] = [4, 25]
    const writing = yield* Effect.fork(
      Effect.forEach(
        Array.from({ length: writers }, (_, writer) => writer),
        (writer) =>
          Effect.forEach(
            Array.from({ length: each }, (_, at) => at),
            (at) => connection.write(frameOf(writer, at))
          ),
        { concurrency: "unbounded" }
      )
    )
    yield* Effect.yieldNow()
    client.socket.resume()
    const next = new Map<string, number>()
    const order: Array<string> = []
    for (let frames = 0; frames < writers * each; frames++) {
      const frame = yield* client.next
      assert.isTrue(typeof frame === "object" && frame !== null && "id" in frame && "text" in frame)
      const [id, text] = [String(Reflect.get(Object(frame), "id")), String(Reflect.get(Object(frame), "text"))]
      const at = next.get(id) ?? 0
      assert.strictEqual(text, `${at}${"x".repeat(65_000)}`)
      next.set(id, at + 1)
      order.push(id)
    }
    yield* Fiber.join(writing)
    // Nobody comes twice while another waits.
    for (let turn = 0; turn < each; turn++) {
      assert.lengthOf(new Set(order.slice(turn * writers, (turn + 1) * writers)), writers)
    }
  })
)

it.scoped("FR-6: a writer that is interrupted while it waits leaves nothing; one under way leaves a whole frame", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    client.socket.pause()
    const big = encodeFrame({ type: "delta", run, text: "b".repeat(900_000) })
    const underway = yield* Effect.fork(connection.write(big))
    yield* Effect.yieldNow()
    const waiting = yield* Effect.fork(connection.write(encodeFrame({ type: "pong", id: "never" })))
    yield* Effect.yieldNow()
    const last = yield* Effect.fork(connection.write(encodeFrame({ type: "pong", id: "last" })))
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(waiting)
    yield* Fiber.interrupt(underway)
    client.socket.resume()
    assert.deepStrictEqual(yield* client.next, { type: "delta", run, text: "b".repeat(900_000) })
    assert.deepStrictEqual(yield* client.next, { type: "pong", id: "last" })
    yield* Fiber.join(last)
  })
)

it.scoped("FR-6: what a client sends is read no faster than it is taken, and none of it is lost", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const [busy, other] = [yield* pair, yield* pair]
    yield* Effect.forkScoped(answerPongs(other.connection))
    const gate = yield* Deferred.make<void>()
    const begun = yield* Deferred.make<void>()
    let taken = 0
    const reading = yield* busy.connection.lines.pipe(
      Stream.runForEach(() => {
        taken++
        return Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(gate))
      }),
      Effect.fork
    )
    yield* busy.client.send(`${"x".repeat(1000)}\n`.repeat(10_000))
    yield* busy.client.end
    yield* Deferred.await(begun)
    yield* serveOthers(other.client)
    assert.isBelow(busy.socket.bytesRead, 500_000)
    assert.strictEqual(taken, 1)
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(reading)
    assert.strictEqual(taken, 10_000)
  })
)

it.scoped("FR-10: a client that goes away is noticed while nobody reads or writes", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    const reading = yield* Effect.fork(lines(connection))
    yield* client.send("half a line")
    yield* client.destroy
    yield* connection.closed
    const left = yield* Fiber.join(reading)
    assert.isAtMost(left.length, 1)
    assert.strictEqual((yield* Effect.flip(connection.write("x\n")))._tag, "ConnectionClosed")
  })
)

it.scoped("FR-10: one that had ended its side, and then goes away, is noticed too", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    yield* client.send("line\n")
    yield* client.end
    assert.deepStrictEqual(yield* lines(connection), ["line"])
    yield* connection.write("still here\n".replace(/.*/, '"still here"'))
    assert.strictEqual(yield* client.next, "still here")
    yield* client.destroy
    yield* client.closed
    yield* TestClock.adjust("1 second")
    yield* connection.closed
  })
)

it.scoped("FR-10: a client that goes away while it does not read fails every waiting writer", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    client.socket.pause()
    const writing = yield* forkAll(20, (writer) => Effect.flip(connection.write(frameOf(writer, 0, 900_000))))
    yield* client.destroy
    for (const writer of writing) assert.strictEqual((yield* Fiber.join(writer))._tag, "ConnectionClosed")
    yield* connection.closed
  })
)

it.scoped("SO-66: finish lets what was asked for go out, and refuses what comes later", () =>
  Effect.gen(function* () {
    const { pair } = yield* makeServer
    const { client, connection } = yield* pair
    const writing = yield* forkAll(10, (at) => connection.write(frameOf(0, at)))
    yield* connection.finish
    yield* Fiber.joinAll(writing)
    assert.strictEqual((yield* Effect.flip(connection.write("late\n")))._tag, "ConnectionClosed")
    assert.lengthOf(yield* client.rest, 10)
  })
)

it.scoped("SO-66: finish gives up on a client that does not read, and the end of the scope closes it", () =>
  Effect.gen(function* () {
    const { accept } = yield* makeServer
    const [client, socket] = yield* accept
    const scope = yield* Scope.make()
    const connection = yield* makeConnection(socket, 1).pipe(Scope.extend(scope))
    client.socket.pause()
    const writing = yield* Effect.fork(Effect.flip(connection.write("x".repeat(5_000_000))))
    yield* Effect.yieldNow()
    const finishing = yield* Effect.fork(connection.finish)
    yield* Effect.yieldNow()
    yield* TestClock.adjust("5 seconds")
    yield* Fiber.join(finishing)
    yield* Scope.close(scope, Exit.void)
    yield* connection.closed
    assert.strictEqual((yield* Fiber.join(writing))._tag, "ConnectionClosed")
    assert.isTrue(socket.destroyed)
  })
)

it.scoped("FR-10: a socket that was closed before anybody looked is a closed connection", () =>
  Effect.gen(function* () {
    const { accept } = yield* makeServer
    const [, socket] = yield* accept
    const closed = yield* Deferred.make<void>()
    socket.on("error", () => {})
    socket.once("close", () => Deferred.unsafeDone(closed, Exit.void))
    socket.destroy(new Error("reset"))
    yield* Deferred.await(closed)
    const connection = yield* makeConnection(socket, 1)
    yield* connection.closed
    assert.deepStrictEqual(yield* lines(connection), [])
    assert.strictEqual((yield* Effect.flip(connection.write("x\n")))._tag, "ConnectionClosed")
  })
)
