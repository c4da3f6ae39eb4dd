/** The contract of live shells, in a container of a real Docker daemon. */
import { Effect } from "effect"
import { describe } from "vitest"
import * as DockerTransport from "../../../packages/shell/src/transport/DockerTransport.ts"
import * as Dockerd from "../support/Dockerd.ts"
import { hasDockerd } from "../support/Installed.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"
import { shared } from "../support/Shared.ts"

describe.runIf(hasDockerd)("in a container", () => {
  const place = shared(
    Effect.gen(function* () {
      const docker = yield* Dockerd.make
      return { docker, container: yield* docker.container() }
    })
  )
  const transport = Effect.flatMap(place, ({ container, docker }) =>
    DockerTransport.make(docker.target(container), docker.settings)
  )
  liveShellContract({ name: "docker", transport, processes, folder: "/home" })
})
