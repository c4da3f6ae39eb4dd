/** Checkpoints in a container of a real Docker daemon, whose image has no git. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import * as DockerTransport from "../../../packages/shell/src/transport/DockerTransport.ts"
import { workspaceOn } from "../support/CheckpointContract.ts"
import * as Dockerd from "../support/Dockerd.ts"
import { lacks } from "../../support/Parts.ts"

describe.skipIf(lacks("docker"))("in a container", () => {
  it.live("SL-150: without git, a checkpoint fails with that reason, and nothing is left behind", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const docker = yield* Dockerd.make
        const transport = yield* DockerTransport.make(docker.target(yield* docker.container()), docker.settings)
        const { checkpoints, sh } = yield* workspaceOn(transport)
        expect(yield* Effect.flip(checkpoints.create("asked"))).toMatchObject({
          _tag: "CheckpointFailed",
          reason: "no git"
        })
        expect(yield* sh("ls -d /tmp/daybook-checkpoints.* 2>/dev/null || echo none")).toBe("none\n")
      })
    )
  )
})
