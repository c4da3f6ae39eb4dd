/** The contract of transports, with a container of a real Docker daemon. */
import { describe } from "vitest"
import { Effect, Layer } from "effect"
import * as DockerTransport from "../../../packages/shell/src/transport/DockerTransport.ts"
import * as Dockerd from "../support/Dockerd.ts"
import { lacks } from "../../support/Parts.ts"
import { Tested, transportContract } from "../support/TransportContract.ts"

const transport = Layer.scoped(
  Tested,
  Effect.gen(function* () {
    const docker = yield* Dockerd.Dockerd
    const container = yield* docker.container()
    return yield* DockerTransport.make(docker.target(container), docker.settings)
  })
).pipe(Layer.provide(Dockerd.layer))

describe.skipIf(lacks("docker"))("in a container", () => {
  transportContract("docker", transport, { namesSignals: false })
})
