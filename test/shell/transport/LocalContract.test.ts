/** The contract of transports, with processes of this machine. */
import { Effect, Layer } from "effect"
import * as Transports from "../../../packages/shell/src/transport/Transports.ts"
import { Tested, transportContract } from "../support/TransportContract.ts"

const transport = Layer.scoped(
  Tested,
  Effect.suspend(() => Transports.make({ transport: "local" }))
)

transportContract("local", transport, { namesSignals: true })
