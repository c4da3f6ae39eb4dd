/**
 * A connection to an SSH server: the host's key is checked before the user's credentials are sent. ssh2 is loaded here, with the
 * first connection. `SshTransport.ts` runs programs on it. Spec: SL-85..SL-93 in specs/shell.md.
 */
import { connect as connectSocket, type Socket } from "node:net"
import { Effect, Exit, Redacted, type Scope } from "effect"
import type { AnyAuthMethod, Client, ConnectConfig, ServerHostKeyAlgorithm } from "ssh2"
import { InvalidOption, TransportFailed } from "../domain/ShellError.ts"
import type { SshTarget } from "../domain/Target.ts"
import { readKey, unusable } from "./KeyFolder.ts"
import { trust, type HostTrust } from "./KnownHosts.ts"
import { makeShared, type Shared } from "./NodeProgram.ts"
import { defaults, type TransportSettings } from "./TransportSettings.ts"

type Ssh2 = typeof import("ssh2")

export interface Connection {
  readonly client: Client
  /** `user@host:port`, for messages. */
  readonly name: string
  readonly shared: Shared
}

const failed = (reason: TransportFailed["reason"], details: string) =>
  new TransportFailed({ transport: "ssh", reason, details })

/** Loaded on first use, for a local shell needs none of it. */
const loadSsh2: Effect.Effect<Ssh2, TransportFailed> = Effect.tryPromise({
  try: async () => (await import("ssh2")).default,
  catch: () => failed("unreachable", "the package ssh2 cannot be loaded: install Daybook's dependencies again")
})

/** Signatures with SHA-1 are not accepted. */
const algorithmsOf: Readonly<Record<string, ReadonlyArray<ServerHostKeyAlgorithm>>> = {
  "ssh-ed25519": ["ssh-ed25519"],
  "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
  "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
  "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
  "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256"]
}

const hostKeyAlgorithms = (types: ReadonlyArray<string>): Array<ServerHostKeyAlgorithm> => [
  ...new Set([...types.flatMap((type) => algorithmsOf[type] ?? []), ...Object.values(algorithmsOf).flat()])
]

const privateKey = Effect.fnUntraced(function* (
  ssh2: Ssh2,
  target: SshTarget,
  path: string,
  folder: string | undefined
) {
  const bytes = yield* readKey(folder, path)
  const passphrase = target.passphrase === undefined ? undefined : Redacted.value(target.passphrase)
  const key = ssh2.utils.parseKey(bytes, passphrase)
  if (!(key instanceof Error)) return key.isPrivateKey() ? key : yield* unusable
  // ssh2 has no codes. Its words do not contain the key.
  if (!/passphrase|integrity check/i.test(key.message)) return yield* unusable
  return yield* new InvalidOption({
    option: "passphrase",
    details: passphrase === undefined ? "the key is encrypted: give its passphrase" : "it does not decrypt the key"
  })
})

interface Credentials {
  readonly methods: ReadonlyArray<AnyAuthMethod>
  /** What they are, for messages. */
  readonly names: string
}

/** The methods to try, in order: key, agent, password. */
const credentials = Effect.fnUntraced(function* (ssh2: Ssh2, target: SshTarget, settings: TransportSettings) {
  const username = target.user
  const methods: Array<AnyAuthMethod> = []
  const names: Array<string> = []
  if (target.keyPath !== undefined) {
    const key = yield* privateKey(ssh2, target, target.keyPath, settings.keyFolder)
    methods.push({ type: "publickey", username, key })
    names.push("the key")
  }
  if (target.agent === true) {
    const agent = process.env["SSH_AUTH_SOCK"]
    if (agent === undefined || agent === "") {
      return yield* new InvalidOption({ option: "agent", details: "SSH_AUTH_SOCK is not set: start an SSH agent" })
    }
    methods.push({ type: "agent", username, agent })
    names.push("the keys of the agent")
  }
  if (target.password !== undefined) {
    const password = Redacted.value(target.password)
    methods.push({ type: "password", username, password })
    // Servers that use PAM may ask for the password this way only.
    methods.push({
      type: "keyboard-interactive",
      username,
      prompt: (_name, _instructions, _language, prompts, finish) =>
        finish(prompts.length === 1 && prompts[0]?.echo !== true ? [password] : [])
    })
    names.push("the password")
  }
  const result: Credentials = { methods, names: names.join(" and ") }
  return result
})

/** Why ssh2 gave up before the connection was ready. Only our own words and system codes go into the message. */
const reasonOf = (cause: Error & { readonly level?: string; readonly code?: unknown }, name: string, tried: string) => {
  switch (cause.level) {
    case "client-authentication":
      return failed("credentials", `${name} refuses ${tried}: check the user and the credentials`)
    case "client-timeout":
      return failed("unreachable", `${name} did not answer in time: check the address and the network`)
    case "client-socket": {
      const code = typeof cause.code === "string" ? cause.code : "unknown fault"
      return failed("unreachable", `${name} cannot be reached (${code}): check the address and the network`)
    }
    default:
      return failed("unreachable", `${name} and Daybook do not agree on a connection: is it an SSH server of today?`)
  }
}

interface Wanted {
  readonly name: string
  readonly config: ConnectConfig
  readonly host: string
  readonly port: number
  readonly hostTrust: HostTrust
  readonly tried: string
}

/** Waits until the server has accepted the credentials. */
const ready = (client: Client, socket: Socket, { config, hostTrust, name, tried }: Wanted) =>
  Effect.async<void, TransportFailed>((resume) => {
    let refusal: TransportFailed | undefined
    let trusted: Buffer | undefined
    const fail = (error: TransportFailed) => resume(Effect.fail(refusal ?? error))
    client.on("ready", () => resume(Effect.void))
    client.on("error", (cause) => {
      // Without the agent's keys the other credentials may do; the server has the last word.
      if (!("level" in cause) || cause.level !== "agent") fail(reasonOf(cause, name, tried))
    })
    client.on("close", () => fail(failed("unreachable", `${name} closed the connection`)))
    const hostVerifier = (key: Buffer, verify: (valid: boolean) => void): void => {
      // Keys are exchanged again during long connections. The host must stay the same.
      if (trusted !== undefined) return verify(key.equals(trusted))
      Effect.runCallback(hostTrust.check(key), {
        onExit: (exit) => {
          if (Exit.isSuccess(exit)) trusted = key
          else if (exit.cause._tag === "Fail") refusal = exit.cause.error
          verify(Exit.isSuccess(exit))
        }
      })
    }
    try {
      client.connect({ ...config, sock: socket, hostVerifier })
    } catch {
      fail(failed("unreachable", `${name}: ssh2 rejects the options`))
    }
  })

/** Opens the connection. The scope's end closes it. */
export const open = Effect.fn("SshConnection.open")(function* (
  target: SshTarget,
  settings: TransportSettings
): Effect.fn.Return<Connection, TransportFailed | InvalidOption, Scope.Scope> {
  const { host, port = 22, user } = target
  const name = `${user}@${host}${port === 22 ? "" : `:${port}`}`
  const hostTrust = yield* trust({ host, port, fingerprint: target.fingerprint }, settings)
  const ssh2 = yield* loadSsh2
  const { methods, names } = yield* credentials(ssh2, target, settings)
  const config: ConnectConfig = {
    username: user,
    authHandler: [...methods],
    readyTimeout: settings.readyMillis ?? defaults.readyMillis,
    keepaliveInterval: settings.keepaliveMillis ?? defaults.keepaliveMillis,
    keepaliveCountMax: settings.keepaliveCount ?? defaults.keepaliveCount,
    algorithms: { serverHostKey: hostKeyAlgorithms(hostTrust.types) }
  }
  // A short command waits 40 ms for an acknowledgement unless the socket sends at once.
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => connectSocket({ host, port, noDelay: true })),
    (opened) => Effect.sync(() => opened.destroy())
  )
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new ssh2.Client()),
    (opened) => Effect.sync(() => opened.end())
  )
  const shared = makeShared()
  client.on("close", shared.lose)
  yield* ready(client, socket, { name, config, host, port, hostTrust, tried: names })
  return { client, name, shared }
})
