/** The contract of live shells, with bash on this machine. `test/long` has it for `sh`, containers and SSH. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"
import { openShell } from "../support/Shells.ts"
import { withoutBash } from "../support/WithoutBash.ts"

describe.concurrent("with bash", () => {
  liveShellContract({
    name: "local",
    transport: Effect.succeed(LocalTransport.makeUnconfined()),
    processes,
    folder: "/usr"
  })
})

it.scopedLive("SL-12: without bash, a POSIX shell keeps its state and survives a stop", () =>
  Effect.gen(function* () {
    const { run, stop } = yield* openShell(yield* withoutBash, "/usr")
    yield* run("cd /tmp; A=kept")
    expect(yield* stop("echo started; sleep 30")).toMatchObject({ stopped: true, code: 124, closed: undefined })
    expect(yield* run('echo "$A ${BASH_VERSION-none}"; (exit 3)')).toMatchObject({
      stdout: "kept none\n",
      code: 3,
      cwd: "/tmp",
      closed: undefined
    })
  })
)
