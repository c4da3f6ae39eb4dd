/**
 * Measures live shells over SSH and in a container, each beside its raw channel: a bash at the other end, without a frame. The
 * OpenSSH server and the Docker daemon are those of the tests.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import ssh2 from "ssh2"
import type { Target } from "../packages/shell/src/domain/Target.ts"
import { none } from "../packages/shell/src/record/ShellRecord.ts"
import * as LiveShell from "../packages/shell/src/session/LiveShell.ts"
import * as Shells from "../packages/shell/src/Shells.ts"
import type { TransportSettings } from "../packages/shell/src/transport/TransportSettings.ts"
import * as Transports from "../packages/shell/src/transport/Transports.ts"
import * as Dockerd from "../test/shell/support/Dockerd.ts"
import * as Sshd from "../test/shell/support/Sshd.ts"
import * as BareShell from "./BareShell.ts"
import { median } from "./Figures.ts"
import { times } from "./Shell.ts"

/** Milliseconds of one `echo hi`, medians. */
export interface Result {
  readonly raw: number
  /** The shortest frame with an exit code. */
  readonly shortest: number
  /** A live shell's bytes and exit code. */
  readonly live: number
  /** Its result. */
  readonly result: number
}

const bash = "exec bash --noprofile --norc"

const sinks = { stdout: () => undefined, stderr: () => undefined }

const beside = Effect.fnUntraced(function* (
  channel: Effect.Effect<BareShell.Channel, never, Scope.Scope>,
  target: Target,
  settings: TransportSettings,
  rounds: number
) {
  const bare = yield* channel
  const transport = yield* Transports.make(target, settings, {})
  const shell = yield* LiveShell.open(transport, { cwd: "/tmp", late: () => undefined })
  const shells = yield* Shells.Shells
  const id = yield* shells.create({ target })
  const found = {
    raw: new Array<number>(),
    shortest: new Array<number>(),
    live: new Array<number>(),
    result: new Array<number>()
  }
  for (let round = 0; round < rounds; round++) {
    found.raw.push(yield* times(2_000, BareShell.raw(bare)))
    found.shortest.push(yield* times(2_000, BareShell.framed(bare)))
    found.live.push(yield* times(2_000, shell.run({ text: "echo hi" }, sinks)))
    found.result.push(yield* times(2_000, shells.exec(id, "echo hi")))
  }
  return {
    raw: median(found.raw),
    shortest: median(found.shortest),
    live: median(found.live),
    result: median(found.result)
  } satisfies Result
})

const sshChannel = ({ folder, port, user }: Sshd.SshServer) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const client = new ssh2.Client()
        client.connect({ host: "127.0.0.1", port, username: user, privateKey: readFileSync(join(folder, "user")) })
        await once(client, "ready")
        client.setNoDelay(true)
        const stream = await new Promise<ssh2.ClientChannel>((resolve, reject) =>
          client.exec(bash, (fault, opened) => (fault === undefined ? resolve(opened) : reject(fault)))
        )
        return { client, stream }
      }),
      ({ client }) => Effect.sync(() => client.end())
    ),
    ({ stream }): BareShell.Channel => ({ stdout: stream, stdin: stream })
  )

const dockerChannel = ({ settings }: Dockerd.Docker, container: string) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn("docker", ["-H", settings.dockerHost ?? "", "exec", "-i", container, "sh", "-c", bash], {
        stdio: ["pipe", "pipe", "inherit"]
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

const run = <E>(work: Effect.Effect<Result, E, Scope.Scope | Shells.Shells>, transports: TransportSettings) =>
  Effect.provide(work, Layer.provide(Shells.layer({ transports }), none))

export const overSsh = (rounds: number): Promise<Result> =>
  Effect.gen(function* () {
    const server = yield* Sshd.make()
    return yield* run(beside(sshChannel(server), server.target(), server.settings, rounds), server.settings)
  }).pipe(Effect.scoped, Effect.runPromise)

export const inContainer = (rounds: number): Promise<Result> =>
  Effect.gen(function* () {
    const docker = yield* Dockerd.make
    const container = yield* docker.container()
    const target = docker.target(container)
    return yield* run(beside(dockerChannel(docker, container), target, docker.settings, rounds), docker.settings)
  }).pipe(Effect.scoped, Effect.runPromise)
