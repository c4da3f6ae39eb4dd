/** How a Docker transport finds a container, fails, and notices its end, with a real daemon. */
import { assert, describe, it } from "@effect/vitest"
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import * as Transports from "../../../packages/shell/src/transport/Transports.ts"
import { temporaryFolder } from "../../support/Database.ts"
import * as Dockerd from "../support/Dockerd.ts"
import { lacks } from "../../support/Parts.ts"
import { runToEnd, waitingProgram } from "../support/Programs.ts"

const lost = { code: null, signal: null }

/** An executable file in place of the Docker client. */
const client = (text: string) =>
  Effect.map(temporaryFolder, (folder) => {
    const path = join(folder, "docker")
    writeFileSync(path, `#!/bin/sh\n${text}\n`)
    chmodSync(path, 0o755)
    return { path, folder }
  })

describe.skipIf(lacks("docker"))("in a container", () => {
  it.layer(Dockerd.layer)("programs in containers", (it) => {
    it.scoped("SL-95: a container without sh or the user, a missing, stopped or paused one are errors", () =>
      Effect.gen(function* () {
        const { container, run, settings, target } = yield* Dockerd.Dockerd
        const refusal = (name: string, fields = {}) =>
          Effect.map(
            Effect.flip(Effect.scoped(Transports.make(target(name, fields), settings))),
            (error) => error.message
          )
        const [running, paused, stopped] = [yield* container(), yield* container(), yield* container()]
        run("pause", paused)
        run("kill", stopped)
        assert.include(yield* refusal("nowhere"), "there is no container nowhere")
        assert.include(yield* refusal(stopped), "does not run: start it")
        assert.include(yield* refusal(paused), "is paused")
        assert.match(yield* refusal(running, { user: "stranger" }), /does not run sh.*stranger/)
        run("unpause", paused)
        run("exec", "-i", running, "rm", "/bin/sh")
        assert.match(yield* refusal(running), /does not run sh.*"sh"/)
      })
    )

    it.scoped("SL-95: a missing client, a missing daemon and a silent one are unreachable", () =>
      Effect.gen(function* () {
        const { settings, target } = yield* Dockerd.Dockerd
        const folder = yield* temporaryFolder
        const silent = join(folder, "silent")
        yield* Effect.acquireRelease(
          Effect.async<ReturnType<typeof createServer>>((resume) => {
            const server = createServer(() => undefined).listen(silent, () => resume(Effect.succeed(server)))
          }),
          (server) => Effect.sync(() => server.close())
        )
        for (const [changed, said] of [
          [{ dockerProgram: "/no/such/docker" }, /\/no\/such\/docker cannot be started \(ENOENT\): install Docker/],
          [{ dockerHost: `unix://${folder}/none` }, /the Docker daemon cannot be asked: .*Cannot connect/],
          [{ dockerHost: `unix://${silent}`, readyMillis: 500 }, /did not answer in time/]
        ] as const) {
          const error = yield* Effect.flip(Transports.make(target("any"), { ...settings, ...changed }))
          assert.deepInclude(error, { _tag: "TransportFailed", reason: "unreachable" })
          assert.match(error.message, said)
        }
      })
    )

    it.scoped("SL-95: programs run as the user that the target names", () =>
      Effect.gen(function* () {
        const { container, settings, target } = yield* Dockerd.Dockerd
        const id = yield* container()
        for (const [fields, expected] of [
          [{}, "0 0"],
          [{ user: "worker" }, "1000 1000"],
          [{ user: "1000:7" }, "1000 7"]
        ] as const) {
          const transport = yield* Transports.make(target(id, fields), settings)
          assert.strictEqual((yield* runToEnd(transport, "echo $(id -u) $(id -g)")).stdout.toString().trim(), expected)
        }
      })
    )

    it.scoped("SL-95: another container that takes over the name is not entered", () =>
      Effect.gen(function* () {
        const { container, run, settings, target } = yield* Dockerd.Dockerd
        const first = yield* container("--name", "web")
        const transport = yield* Transports.make(target("web"), settings)
        run("rename", first, "old")
        const second = yield* container("--name", "web")
        run("exec", second, "touch", "/second")
        const { exit } = yield* runToEnd(transport, "[ ! -e /second ]")
        assert.strictEqual(exit.code, 0)
      })
    )

    it.scoped("SL-96: the client gets the variables that name the daemon, and no secrets", () =>
      Effect.gen(function* () {
        const { target } = yield* Dockerd.Dockerd
        const variables = { DOCKER_HOST: "unix:///from/environment", DOCKER_CONTEXT: "there", API_TOKEN: "secret" }
        const before = { ...process.env }
        yield* Effect.acquireRelease(
          Effect.sync(() => Object.assign(process.env, variables)),
          () => Effect.sync(() => Object.keys(variables).forEach((name) => delete process.env[name]))
        )
        const { folder, path } = yield* client(`env > "$0.env"; printf '%s\\n' "$@" > "$0.args"; exit 1`)
        const sees = (settings: Transports.TransportSettings) =>
          Effect.map(Effect.flip(Transports.make(target("any"), { dockerProgram: path, ...settings })), () =>
            readFileSync(join(folder, "docker.env"), "utf8").split("\n")
          )
        const own = yield* sees({})
        assert.includeMembers(own, [
          "DOCKER_HOST=unix:///from/environment",
          "DOCKER_CONTEXT=there",
          `PATH=${before.PATH}`
        ])
        assert.isFalse(own.some((line) => line.includes("secret")))
        assert.includeMembers(yield* sees({ dockerHost: "unix:///of/operator" }), ["DOCKER_HOST=unix:///of/operator"])
        assert.strictEqual(readFileSync(join(folder, "docker.args"), "utf8").split("\n").slice(-3).join(" "), "-- any ")
      })
    )

    it.scoped("SL-97: a program whose container stops, or starts again, is lost", () =>
      Effect.gen(function* () {
        const { container, run, settings, target } = yield* Dockerd.Dockerd
        for (const stop of [["kill"], ["restart", "-t", "0"], ["rm", "-f"]]) {
          const id = yield* container()
          const transport = yield* Transports.make(target(id), settings)
          const program = yield* waitingProgram(transport)
          run(...stop, id)
          assert.deepStrictEqual(yield* program.exit, lost, stop[0])
          assert.deepInclude(yield* Effect.flip(transport.run("true")), { reason: "lost" })
        }
      })
    )

    it.scoped("SL-97: a program whose client is killed is lost", () =>
      Effect.gen(function* () {
        const { container, settings, target } = yield* Dockerd.Dockerd
        const { path } = yield* client(`[ "$1" = exec ] && echo $$ > "$0.pid"; exec docker "$@"`)
        const transport = yield* Transports.make(target(yield* container()), { ...settings, dockerProgram: path })
        const program = yield* waitingProgram(transport)
        process.kill(Number(readFileSync(`${path}.pid`, "utf8")), "SIGKILL")
        assert.deepStrictEqual(yield* program.exit, lost)
      })
    )
  })

  it.scoped("SL-97: a program whose daemon ends is lost", () =>
    Effect.gen(function* () {
      const { container, pid, settings, target } = yield* Dockerd.make
      const transport = yield* Transports.make(target(yield* container("--stop-signal=KILL")), settings)
      const program = yield* waitingProgram(transport)
      process.kill(pid, "SIGTERM")
      assert.deepStrictEqual(yield* program.exit, lost)
    })
  )
})
