/** How an SSH connection begins, fails and ends, with a real OpenSSH server whose processes are killed and stopped. */
import { assert, describe, it } from "@effect/vitest"
import { createServer, type Server, type Socket } from "node:net"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import type { Transport } from "../../../packages/shell/src/transport/Program.ts"
import * as Transports from "../../../packages/shell/src/transport/Transports.ts"
import { freePort } from "../support/Daemon.ts"
import { lacks } from "../../support/Parts.ts"
import { runToEnd, waitingProgram } from "../support/Programs.ts"
import * as Sshd from "../support/Sshd.ts"

const lost = { code: null, signal: null }

const connect = (settings: Transports.TransportSettings = {}) =>
  Effect.flatMap(Sshd.Sshd, (server) => Transports.make(server.target(), { ...server.settings, ...settings }))

/** The server's process that has the connection. */
const serverProcess = (transport: Transport) =>
  Effect.map(runToEnd(transport, "echo $PPID"), ({ stdout }) => Number(stdout.toString().trim()))

/** A server that accepts connections and does with each what it is told. */
const tcpServer = (serve: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.async<{ readonly server: Server; readonly port: number }>((resume) => {
      const server = createServer(serve).listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = address !== null && typeof address === "object" ? address.port : 0
        resume(Effect.succeed({ server, port }))
      })
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

describe.skipIf(lacks("sshd"))("over SSH", () => {
  it.layer(Sshd.layer)("SSH connections", (it) => {
    it.scoped("SL-93: an address without a server, a silent server, and one that is not SSH are unreachable", () =>
      Effect.gen(function* () {
        const { settings, target } = yield* Sshd.Sshd
        const silent = yield* tcpServer(() => undefined)
        const web = yield* tcpServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"))
        const closing = yield* tcpServer((socket) => socket.destroy())
        for (const [port, said] of [
          [yield* freePort, "ECONNREFUSED"],
          [silent.port, "did not answer in time"],
          [web.port, "is it an SSH server"],
          [closing.port, "127.0.0.1"]
        ] as const) {
          const error = yield* Effect.flip(Transports.make(target({ port }), { ...settings, readyMillis: 300 }))
          assert.deepInclude(error, { _tag: "TransportFailed", reason: "unreachable" })
          assert.include(error.message, said)
        }
        const nowhere = yield* Effect.flip(Transports.make(target({ host: "nowhere.invalid" }), settings))
        assert.match(nowhere.message, /cannot be reached \((?:ENOTFOUND|EAI_AGAIN)\)/)
      })
    )

    it.scoped("SL-93: when the server's process is killed, every program ends and new ones fail", () =>
      Effect.gen(function* () {
        const transport = yield* connect()
        const pid = yield* serverProcess(transport)
        const programs = yield* Effect.replicateEffect(waitingProgram(transport), 3)
        process.kill(pid, "SIGKILL")
        for (const program of programs) {
          assert.deepStrictEqual(yield* program.exit, lost)
          yield* program.write("nobody reads this")
        }
        const error = yield* Effect.flip(transport.run("true"))
        assert.deepInclude(error, { reason: "lost" })
      })
    )

    it.scoped("SL-93: a server that is frozen is found by its silence, paused programs included", () =>
      Effect.gen(function* () {
        const transport = yield* connect({ keepaliveMillis: 100, keepaliveCount: 2 })
        const pid = yield* serverProcess(transport)
        const program = yield* waitingProgram(transport)
        const printing = yield* waitingProgram(transport, "cat /dev/zero")
        printing.pause()
        process.kill(pid, "SIGSTOP")
        yield* Effect.addFinalizer(() => Effect.sync(() => process.kill(pid, "SIGKILL")))
        const opening = yield* Effect.fork(Effect.flip(transport.run("true")))
        assert.deepStrictEqual([yield* program.exit, yield* printing.exit], [lost, lost])
        assert.deepInclude(yield* Fiber.join(opening), { reason: "lost" })
      })
    )

    it.scoped("SL-83: the end of the transport's scope closes the connection and ends its programs", () =>
      Effect.gen(function* () {
        const { said, user } = yield* Sshd.Sshd
        const scope = yield* Scope.make()
        const transport = yield* Scope.extend(connect(), scope)
        const program = yield* waitingProgram(transport)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* program.exit, lost)
        yield* said(new RegExp(`Disconnected from user ${user}|closed by user ${user}`))
      })
    )

    it.scoped("SL-83: an interrupted attempt leaves no connection", () =>
      Effect.gen(function* () {
        const { settings, target } = yield* Sshd.Sshd
        const [opened, closed] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const { port } = yield* tcpServer((socket) => {
          socket.on("error", () => undefined)
          socket.on("close", () => Deferred.unsafeDone(closed, Exit.void))
          socket.resume()
          Deferred.unsafeDone(opened, Exit.void)
        })
        const attempt = yield* Effect.fork(Effect.scoped(Transports.make(target({ port }), settings)))
        yield* Deferred.await(opened)
        yield* Fiber.interrupt(attempt)
        yield* Deferred.await(closed)
      })
    )
  })

  it.scoped("SL-93: a server that takes no more channels is an error, and the others run on", () =>
    Effect.gen(function* () {
      const { settings, target } = yield* Sshd.make(["MaxSessions 2"])
      const transport = yield* Transports.make(target(), settings)
      const programs = yield* Effect.replicateEffect(waitingProgram(transport, "cat; exit 5"), 2)
      const error = yield* Effect.flip(transport.run("true"))
      assert.deepInclude(error, { reason: "no shell" })
      for (const program of programs) {
        yield* program.endInput
        assert.strictEqual((yield* program.exit).code, 5)
      }
    })
  )

  it.scoped("SL-94: a login that runs no sh fails before the first program", () =>
    Effect.gen(function* () {
      for (const command of ["echo no shell for you", "/usr/sbin/nologin", "false"]) {
        const { settings, target } = yield* Sshd.make([`ForceCommand ${command}`])
        const error = yield* Effect.flip(Transports.make(target(), settings))
        assert.deepInclude(error, { _tag: "TransportFailed", reason: "no shell" })
      }
    })
  )
})
