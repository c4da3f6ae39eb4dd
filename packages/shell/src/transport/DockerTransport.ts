/**
 * Programs in a running container, started by the Docker client with `docker exec`. The container is named by its full id once
 * it was found, so that another one with the same name is not entered later. Uses `node:child_process`, as `LocalTransport.ts`
 * does. Spec: SL-80..SL-83, SL-95..SL-97 in specs/shell.md.
 */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import { redactSecrets } from "@daybook/log/support/Redaction"
import { Effect, type Scope } from "effect"
import { TransportFailed } from "../domain/ShellError.ts"
import type { DockerTarget } from "../domain/Target.ts"
import {
  type Ending,
  type Exit,
  lostExit,
  makeProgram,
  makeShared,
  type Program,
  type Shared,
  type Transport
} from "./Program.ts"
import { defaults, type TransportSettings } from "./TransportSettings.ts"

const failed = (reason: TransportFailed["reason"], details: string) =>
  new TransportFailed({ transport: "docker", reason, details })

/** What the client reads of its environment to find the daemon. */
const dockerVariables = [
  "DOCKER_HOST",
  "DOCKER_CONTEXT",
  "DOCKER_CONFIG",
  "DOCKER_CERT_PATH",
  "DOCKER_TLS_VERIFY",
  "DOCKER_API_VERSION"
]

interface Docker {
  readonly program: string
  readonly env: Record<string, string>
  /** How long an answer of the daemon may take. */
  readonly millis: number
}

const docker = (settings: TransportSettings): Docker => ({
  program: settings.dockerProgram ?? defaults.dockerProgram,
  env: {
    ...childEnvironment(process.env, dockerVariables),
    ...(settings.dockerHost === undefined ? {} : { DOCKER_HOST: settings.dockerHost })
  },
  millis: settings.readyMillis ?? defaults.readyMillis
})

interface Answer {
  /** Null if the client did not end by itself. */
  readonly code: number | null
  /** Set if there is no client. */
  readonly fault: string | undefined
  readonly stdout: string
  readonly stderr: string
}

/** Asks the client something that ends soon. */
const ask = ({ env, millis, program }: Docker, args: ReadonlyArray<string>) =>
  Effect.async<Answer>((resume) => {
    const options = { env, timeout: millis, killSignal: "SIGKILL", maxBuffer: 1024 * 1024 } as const
    const child = execFile(program, args, options, (cause, stdout, stderr) => {
      const code = cause === null ? 0 : typeof cause.code === "number" ? cause.code : null
      const fault = cause !== null && typeof cause.code === "string" ? cause.code : undefined
      resume(Effect.succeed({ code, fault, stdout, stderr }))
    })
    child.stdin?.end()
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** The first line of what the client says, without secrets. Faults of the container's runtime are on standard output. */
const saidBy = ({ stderr, stdout }: Answer): string => {
  const line = `${stderr}\n${stdout}`.split("\n").find((each) => each.trim() !== "") ?? ""
  return redactSecrets(line.trim().slice(0, 300)) || "the client said nothing"
}

type ContainerState = { readonly id: string; readonly startedAt: string }

/** Finds a running container by name or id. */
const find = Effect.fnUntraced(function* (client: Docker, container: string) {
  const format = "{{.Id}} {{.State.Running}} {{.State.Paused}} {{.State.StartedAt}}"
  const answer = yield* ask(client, ["container", "inspect", "--format", format, "--", container])
  if (answer.fault !== undefined) {
    return yield* failed(
      "unreachable",
      `the program ${client.program} cannot be started (${answer.fault}): install Docker`
    )
  }
  if (answer.code === null) {
    return yield* failed("unreachable", "the Docker daemon did not answer in time: check that it runs")
  }
  if (/no such (?:container|object)/i.test(answer.stderr)) {
    return yield* failed("unreachable", `there is no container ${container}: see docker ps`)
  }
  if (answer.code !== 0) {
    return yield* failed("unreachable", `the Docker daemon cannot be asked: ${saidBy(answer)}`)
  }
  const [id = "", running, paused, startedAt = ""] = answer.stdout.trim().split(" ")
  if (running !== "true") return yield* failed("unreachable", `the container ${container} does not run: start it`)
  if (paused === "true") return yield* failed("unreachable", `the container ${container} is paused: unpause it`)
  const found: ContainerState = { id, startedAt }
  return found
})

const execArguments = ({ id }: ContainerState, { user }: DockerTarget, script: string): Array<string> => [
  "exec",
  "-i",
  ...(user === undefined ? [] : ["-u", user]),
  "--",
  id,
  "sh",
  "-c",
  script
]

interface Inside {
  readonly client: Docker
  readonly target: DockerTarget
  readonly found: ContainerState
  /** Lost when the container stops, or the daemon no longer says that it runs. */
  readonly shared: Shared
}

/** Waits for the container's end: clients that run programs in it may not notice. */
const watch = Effect.fnUntraced(function* ({ env, program }: Docker, { id }: ContainerState) {
  const shared = makeShared()
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(program, ["wait", id], { env, detached: true, stdio: "ignore" })
      for (const event of ["exit", "error"]) child.on(event, shared.lose)
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  return shared
})

/** The exit code of a program that was killed, as the end of its container does before the daemon knows of it. */
const killed = 137

/** Whether the container runs programs. A container whose first process was killed runs none. */
const isAlive = ({ client, found, target }: Omit<Inside, "shared">) =>
  Effect.map(ask(client, execArguments(found, target, "exit 42")), (answer) => ({ answer, alive: answer.code === 42 }))

/**
 * How the program ended. The client reports a code of its own when the container stops or the daemon is gone, so a code other
 * than 0 counts only if the container still runs.
 */
const endOf = Effect.fnUntraced(function* (inside: Inside, code: number | null): Effect.fn.Return<Exit> {
  if (code === 0) return { code, signal: null }
  if (code === null) return lostExit
  const isSame = Effect.map(
    find(inside.client, inside.found.id),
    ({ startedAt }) => startedAt === inside.found.startedAt
  )
  const runsOn =
    (code !== killed || (yield* isAlive(inside)).alive) && (yield* Effect.orElseSucceed(isSame, () => false))
  if (runsOn) return { code, signal: null }
  inside.shared.lose()
  return lostExit
})

interface DockerProcess extends Ending {
  readonly child: ChildProcessWithoutNullStreams
}

const start = (inside: Inside, script: string): Effect.Effect<DockerProcess, TransportFailed> =>
  Effect.async((resume) => {
    const { client, found, target } = inside
    const cannot = () => resume(failed("no shell", `the program ${client.program} cannot be started with this script`))
    try {
      // In a group of its own, the client gets no interrupt of the terminal.
      const child = spawn(client.program, execArguments(found, target, script), { env: client.env, detached: true })
      const ending = makeProgram({ input: child.stdin, stdout: child.stdout, stderr: child.stderr })
      child.on("exit", (code) => void Effect.runCallback(Effect.map(endOf(inside, code), ending.end)))
      child.on("error", cannot)
      child.on("spawn", () => resume(Effect.succeed({ ...ending, child })))
    } catch {
      // Some failures, such as a NUL in the script, are thrown instead of emitted.
      cannot()
    }
  })

const run = (inside: Inside) =>
  Effect.fn("DockerTransport.run")(function* (script: string): Effect.fn.Return<Program, TransportFailed, Scope.Scope> {
    if (inside.shared.isLost()) {
      return yield* failed(
        "lost",
        `the container ${inside.target.container} has stopped: start it and create another shell`
      )
    }
    const { end, program } = yield* Effect.acquireRelease(start(inside, script), ({ child, detach }) =>
      Effect.sync(() => {
        detach()
        child.kill("SIGKILL")
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
      })
    )
    const forget = inside.shared.onLost(() => end(lostExit))
    yield* Effect.addFinalizer(() => Effect.sync(forget))
    return program
  })

/** Finds the container and runs `sh` in it once. */
export const make = Effect.fn("DockerTransport.make")(function* (
  target: DockerTarget,
  settings: TransportSettings = {}
): Effect.fn.Return<Transport, TransportFailed, Scope.Scope> {
  const client = docker(settings)
  const found = yield* find(client, target.container)
  const { alive, answer } = yield* isAlive({ client, target, found })
  if (!alive) {
    return yield* failed("no shell", `the container ${target.container} does not run sh: ${saidBy(answer)}`)
  }
  const inside: Inside = { client, target, found, shared: yield* watch(client, found) }
  return { name: "docker", run: run(inside), runShell: run(inside) }
})
