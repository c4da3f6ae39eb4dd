/** Shells by id on other machines and in containers: the target decides where commands run. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { ShellRecord } from "../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import type { TransportSettings } from "../../packages/shell/src/transport/TransportSettings.ts"
import { freePort } from "./support/Daemon.ts"
import * as Dockerd from "./support/Dockerd.ts"
import { lacks } from "../support/Parts.ts"
import * as Sshd from "./support/Sshd.ts"

const nothingRecorded = Layer.succeed(ShellRecord, ShellRecord.of({ write: () => Effect.void }))

const withShells = <A, E, R>(
  transports: TransportSettings | undefined,
  use: (shells: Shells.Shells["Type"]) => Effect.Effect<A, E, R>
) =>
  Effect.flatMap(Shells.Shells, use).pipe(
    Effect.provide(Layer.provide(Shells.layer(transports === undefined ? {} : { transports }), nothingRecorded))
  )

it.live("SL-1: a command for an SSH host that cannot be reached runs nowhere", () =>
  withShells(undefined, (shells) =>
    Effect.gen(function* () {
      const target = { transport: "ssh", host: "127.0.0.1", user: "nobody", password: Redacted.make("secret") } as const
      const error = yield* Effect.flip(shells.create({ target: { ...target, port: yield* freePort } }))
      expect(error).toMatchObject({ _tag: "TransportFailed", transport: "ssh", reason: "unreachable" })
    })
  )
)

describe.skipIf(lacks("sshd"))("over SSH", () => {
  it.scopedLive("SL-1: commands for an SSH host run there, as the user", () =>
    Effect.gen(function* () {
      const { port, settings, target, user } = yield* Sshd.make()
      yield* withShells(settings, (shells) =>
        Effect.gen(function* () {
          const id = yield* shells.create({ target: target({ cwd: "/usr" }) })
          expect(id).toBe(`1_ssh_${user}@127.0.0.1:${port}`)
          expect(yield* shells.exec(id, "id -un")).toMatchObject({ stdout: user, exit_code: 0, cwd: "/usr" })
        })
      )
    })
  )
})

describe.skipIf(lacks("docker"))("in a container", () => {
  it.scopedLive("SL-1: commands for a container run there, as the user", () =>
    Effect.gen(function* () {
      const { container, settings, target } = yield* Dockerd.make
      const id = yield* container("--name", "web")
      yield* withShells(settings, (shells) =>
        Effect.gen(function* () {
          const shell = yield* shells.create({ target: target("web", { user: "worker", cwd: "/home" }) })
          expect(shell).toBe("1_docker_web")
          const result = yield* shells.exec(shell, "hostname; id -un")
          expect(result).toMatchObject({ stdout: `${id}\nworker`, exit_code: 0, cwd: "/home" })
        })
      )
    })
  )
})
