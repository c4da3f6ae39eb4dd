/** The contract of live shells, in containers of a real Docker daemon: one with bash, and one with BusyBox's shell alone. */
import { Effect } from "effect"
import { describe } from "vitest"
import * as DockerTransport from "../../../packages/shell/src/transport/DockerTransport.ts"
import * as Dockerd from "../support/Dockerd.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"
import { shared } from "../support/Shared.ts"
import { lacks } from "../../support/Parts.ts"

describe.skipIf(lacks("docker"))("in a container", { concurrent: true }, () => {
  const place = shared(
    Effect.gen(function* () {
      const docker = yield* Dockerd.make
      const [bash, ash] = [yield* docker.container(), yield* docker.container()]
      docker.run("exec", ash, "/bin/busybox", "rm", "/bin/bash")
      return { docker, bash, ash }
    })
  )
  const transport = (shell: "ash" | "bash") =>
    Effect.flatMap(place, ({ docker, ...containers }) =>
      DockerTransport.make(docker.target(containers[shell]), docker.settings)
    )
  liveShellContract({ name: "docker", transport: transport("bash"), processes, folder: "/home", startsLate: true })
  liveShellContract({
    name: "docker, without bash",
    transport: transport("ash"),
    processes,
    folder: "/home",
    closable: "3 4 5 9",
    execFails: "true",
    stopsLists: false,
    startsLate: true
  })
})
