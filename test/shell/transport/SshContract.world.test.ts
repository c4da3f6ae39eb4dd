/** The contract of transports, with a real OpenSSH server. */
import { describe } from "vitest"
import { Effect, Layer } from "effect"
import * as SshTransport from "../../../packages/shell/src/transport/SshTransport.ts"
import { lacks } from "../../support/Parts.ts"
import * as Sshd from "../support/Sshd.ts"
import { Tested, transportContract } from "../support/TransportContract.ts"

const transport = Layer.scoped(
  Tested,
  Effect.flatMap(Sshd.Sshd, ({ settings, target }) => SshTransport.make(target(), settings))
).pipe(Layer.provide(Sshd.layer))

describe.skipIf(lacks("sshd"))("over SSH", () => {
  transportContract("ssh", transport, { namesSignals: true })
})
