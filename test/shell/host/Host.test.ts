/** A host of live shells and its client over a real socket, in this process. Verbs: `test/cli/ShellHost.process.world.test.ts`. */
import { mkdtempSync, rmSync } from "node:fs"
import { connect as connectSocket, createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as SocketServer from "@effect/platform/SocketServer"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import * as RpcSerialization from "@effect/rpc/RpcSerialization"
import { expect, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, FastCheck, Fiber, Layer, Option, Stream } from "effect"
import { describe } from "vitest"
import { CheckpointFailed } from "../../../packages/shell/src/checkpoint/Checkpoints.ts"
import {
  CommandBlocked,
  InvalidOption,
  ShellClosed,
  ShellLimit,
  ShellNotFound,
  TransportFailed
} from "../../../packages/shell/src/domain/ShellError.ts"
import * as HostClient from "../../../packages/shell/src/host/HostClient.ts"
import * as HostProtocol from "../../../packages/shell/src/host/HostProtocol.ts"
import { type ExecNews, HostBusy, HostEnding } from "../../../packages/shell/src/host/HostProtocol.ts"
import * as HostServer from "../../../packages/shell/src/host/HostServer.ts"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../../packages/shell/src/Shells.ts"
import type { ShellSettings } from "../../../packages/shell/src/ShellOptions.ts"
import { forAll } from "../../support/Cases.ts"

const local = { target: { transport: "local", cwd: "/tmp" } } as const

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-host-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A host and a client of it. */
const hosted = Effect.fnUntraced(function* (settings: ShellSettings = {}) {
  const path = join(yield* folder, "socket")
  const context = yield* Layer.build(Layer.provide(Shells.layer(settings), ShellRecord.none))
  const shells = yield* Effect.provide(Shells.Shells, context)
  const server = yield* HostServer.make({ hello: { version: "1", pid: 1, database: "db" }, linger: "1 hour", shells })
  yield* Effect.provideService(server.serve, SocketServer.SocketServer, yield* NodeSocketServer.make({ path }))
  return { path, server, client: yield* HostClient.connect(path) }
})

let calls = 0
const exec = (client: HostClient.HostClient, id: string, command: string, options: object = {}) =>
  client.exec({ call: String(++calls), id, command, ...options })

const textOf = (news: Iterable<ExecNews>): string =>
  Array.from(news, (each) => (each._tag === "Printed" ? each.text : "")).join("")

describe("a host", () => {
  it.scopedLive("SL-175: every error arrives as itself, with its message", () =>
    Effect.gen(function* () {
      const { client, server } = yield* hosted({ limit: 2 })
      const id = yield* client.create({ ...local, lists: { deny: ["touch"] } })
      const failure = (command: string, options?: object) =>
        Effect.flip(Stream.runDrain(exec(client, id, command, options)))
      const blocked = yield* failure("touch x")
      expect(blocked).toBeInstanceOf(CommandBlocked)
      expect(blocked.message).toMatch(/^the shell's policy blocks the command: .*touch/)
      expect(yield* failure("true", { timeoutSeconds: 0 })).toBeInstanceOf(InvalidOption)
      expect(yield* failure("true", { budget: { grep: { pattern: "(" } } })).toBeInstanceOf(InvalidOption)
      const missing = yield* Effect.flip(Stream.runDrain(exec(client, "9_local", "true")))
      expect(missing).toBeInstanceOf(ShellNotFound)
      expect(missing.message).toBe("there is no shell 9_local")
      expect(yield* Effect.flip(client.checkpoint(id, undefined))).toBeInstanceOf(CheckpointFailed)
      const nowhere = { target: { transport: "local", cwd: "/nowhere" } } as const
      expect(yield* Effect.flip(client.create(nowhere))).toBeInstanceOf(TransportFailed)
      yield* client.create(local)
      expect(yield* Effect.flip(client.create(local))).toEqual(new ShellLimit({ limit: 2 }))
      expect(yield* client.destroy(id)).toBe(true)
      expect(yield* failure("true")).toEqual(new ShellClosed({ shellID: id, reason: "destroyed" }))
      yield* server.refuse
      expect(yield* Effect.flip(client.create(local))).toEqual(new HostEnding())
    })
  )

  it.effect("SL-175: a message is whole, wherever the bytes are divided", () =>
    Effect.gen(function* () {
      const { unsafeMake } = yield* RpcSerialization.RpcSerialization
      forAll(
        [
          FastCheck.array(FastCheck.string({ unit: "grapheme", maxLength: 20 }), { maxLength: 5 }),
          FastCheck.array(FastCheck.integer({ min: 1, max: 7 }), { minLength: 1 })
        ],
        100,
        (texts, sizes) => {
          const bytes = Buffer.from(texts.map((text) => unsafeMake().encode({ text })).join(""))
          const parser = unsafeMake()
          const seen: Array<unknown> = []
          for (let at = 0, index = 0; at < bytes.length; index++) {
            const size = sizes[index % sizes.length] ?? 1
            seen.push(...parser.decode(bytes.subarray(at, at + size)))
            at += size
          }
          expect(seen).toEqual(texts.map((text) => ({ text })))
        }
      )
    }).pipe(Effect.provide(HostProtocol.layerHost))
  )

  it.scopedLive("SL-178: a slow reader gets the whole output, and the command waits for it", () =>
    Effect.gen(function* () {
      const { client } = yield* hosted()
      const [id, other] = [yield* client.create(local), yield* client.create(local)]
      const bytes = 16_000_000
      const work = `head -c ${bytes} /dev/zero | tr '\\0' a`
      let longest = 0
      let total = 0
      let waited = false
      yield* Stream.runForEach(exec(client, id, work, { live: true }), (news) => {
        if (news._tag !== "Printed") return Effect.void
        total += news.text.length
        longest = Math.max(longest, news.text.length)
        if (waited) return Effect.void
        waited = true
        // In this time, a command that does not wait prints everything.
        return Stream.runDrain(exec(client, other, `${work} | wc -c; ${work} | wc -c`))
      })
      expect(total).toBe(bytes)
      expect(longest).toBeLessThan(1_500_000)
    })
  )

  it.effect(
    "SL-178: much held text makes the command wait, taking it lets it go on, and far too much is left out",
    () =>
      Effect.gen(function* () {
        const text = yield* HostServer.makeLiveText
        const orders: Array<string> = []
        const flow = { pause: () => void orders.push("pause"), resume: () => void orders.push("resume") }
        text.add("stdout", "a".repeat(262_144), flow)
        expect(orders).toEqual([])
        text.add("stdout", "a", flow)
        expect(orders).toEqual(["pause"])
        expect(yield* text.take).toEqual([{ _tag: "Printed", stream: "stdout", text: "a".repeat(262_145) }])
        expect(orders).toEqual(["pause", "resume"])
        // A command that is stopped does not wait.
        for (const part of ["b", "c", "d", "e"]) text.add("stderr", part.repeat(1_048_576), flow)
        text.add("stdout", "too much", flow)
        const [first, second, ...rest] = yield* text.take
        expect(first?.text.length).toBe(4_194_304)
        expect([second?.text, rest]).toEqual(["\n[... 8 characters left out ...]\n", []])
        text.add("stdout", "one", flow)
        text.add("stderr", "two", flow)
        text.add("stderr", "three", flow)
        yield* text.end
        expect((yield* text.take).map(({ text: each }) => each)).toEqual(["one", "twothree"])
        expect(yield* Effect.flip(text.take)).toEqual(Option.none())
      })
  )

  it.scopedLive("SL-178: a command that waits for its reader can be stopped, and the shell stays", () =>
    Effect.gen(function* () {
      const { client } = yield* hosted()
      const id = yield* client.create(local)
      let stopped = false
      const news = yield* Stream.runCollect(
        client.exec({ call: "abc", id, command: "yes", live: true }).pipe(
          Stream.tap((each) => {
            if (each._tag !== "Printed" || stopped) return Effect.void
            stopped = true
            return client.stop("abc")
          })
        )
      )
      expect(Chunk.toReadonlyArray(news).at(-1)).toMatchObject({ _tag: "Ended", result: { exit_code: 130 } })
      expect(textOf(yield* Stream.runCollect(exec(client, id, "echo here", { live: true })))).toBe("here\n")
    })
  )

  it.scopedLive("SL-174: calls beyond the limit are refused, and the end of another makes room", () =>
    Effect.gen(function* () {
      const { client } = yield* hosted()
      const id = yield* client.create(local)
      const fibers = yield* Effect.forEach(Array.from({ length: 256 }), () =>
        Effect.gen(function* () {
          const begun = yield* Deferred.make<void>()
          const fiber = yield* Effect.fork(
            Stream.runForEach(exec(client, id, "sleep 1000.9"), () => Deferred.succeed(begun, undefined))
          )
          yield* Deferred.await(begun)
          return fiber
        })
      )
      expect(yield* Effect.flip(Stream.runDrain(exec(client, id, "true")))).toEqual(new HostBusy({ limit: 256 }))
      yield* Fiber.interruptAll(fibers)
      yield* client.destroy(id)
      const again = yield* client.create(local)
      expect(textOf(yield* Stream.runCollect(exec(client, again, "echo here", { live: true })))).toBe("here\n")
    })
  )

  it.scopedLive("SL-174: a message that is too long, or none, ends its connection and no other", () =>
    Effect.gen(function* () {
      const { client, path } = yield* hosted()
      for (const message of ["a".repeat(9 * 1024 * 1024), "null\n"]) {
        yield* Effect.async<void>((resume) => {
          const socket = connectSocket({ path }, () => socket.write(message))
          socket.on("error", () => undefined)
          socket.once("close", () => resume(Effect.void))
          socket.resume()
        })
      }
      expect(yield* client.list).toEqual([])
    })
  )

  it.scopedLive("SL-172: what does not answer, or is no host, is told apart from no host", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const absent = yield* Effect.flip(HostClient.connect(join(at, "nothing")))
      expect(absent).toBeInstanceOf(HostClient.HostAbsent)
      const path = join(at, "other")
      yield* Effect.acquireRelease(
        Effect.async<Server>((resume) => {
          const server = createServer((socket) => socket.end("HTTP/1.1 400\n")).listen(path, () =>
            resume(Effect.succeed(server))
          )
        }),
        (server) => Effect.sync(() => server.close())
      )
      expect(yield* Effect.flip(HostClient.connect(path))).toMatchObject({ _tag: "HostUnusable", reason: "no host" })
    })
  )
})
