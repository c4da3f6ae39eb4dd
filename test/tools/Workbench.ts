/**
 * A Location in a temporary folder with the real tools over it: the real registry, permissions, output store and
 * files. What a person would answer is given by the test.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeContext } from "@effect/platform-node"
import { Context, Effect, Layer } from "effect"
import type { Agent } from "../../packages/core/src/domain/Agent.ts"
import type { Rule } from "../../packages/core/src/domain/Rule.ts"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import * as Permission from "../../packages/core/src/permission/Permission.ts"
import { Answer, PermissionAsker, type PermissionRequest } from "../../packages/core/src/permission/PermissionAsker.ts"
import type { PermissionStore } from "../../packages/core/src/permission/PermissionStore.ts"
import * as HostTools from "../../packages/core/src/tool/HostTools.ts"
import type { ToolCall } from "../../packages/core/src/tool/ToolDefinition.ts"
import * as ToolRegistry from "../../packages/core/src/tool/ToolRegistry.ts"
import * as ToolOutputStore from "../../packages/core/src/workspace/ToolOutputStore.ts"
import { CurrentLocation } from "../../packages/log/src/domain/Values.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { builtins } from "../../packages/tools/src/BuiltinTools.ts"
import { approvals } from "../support/Approvals.ts"

export const allowAll: ReadonlyArray<Rule> = [{ permission: "*", resource: "*", verdict: "allow" }]

export const agentWith = (permissions: ReadonlyArray<Rule>): Agent => ({ name: "tester", permissions })

export const sessionID = SessionID.make("ses_tools")

export const callBy = (agent: Agent, directory: string, over: Partial<ToolCall> = {}): ToolCall => ({
  sessionID,
  messageID: MessageID.make("msg_tools"),
  callID: "call_1",
  agent,
  location: { directory },
  progress: () => Effect.void,
  ...over
})

/** A temporary folder, as the system names it, that goes with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "daybook-tools-")))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** What the model reads of an output. */
export const textOf = (output: ToolOutput): string =>
  output.content.map((item) => (item.type === "text" ? item.text : `<${item.mime}>`)).join("\n")

export interface Options {
  readonly rules?: ReadonlyArray<Rule>
  readonly answer?: (request: PermissionRequest) => Effect.Effect<Answer>
  readonly store?: Layer.Layer<PermissionStore>
  readonly outputs?: Layer.Layer<ToolOutputStore.ToolOutputStore>
  readonly bash?: Agent["bash"]
  /** Other tools than the built-in ones. */
  readonly tools?: ToolRegistry.Builtins
}

/** The Location is `folder`; beside it, `outside` belongs to somebody else, and `outputs` to the output store. */
export const makeWorkbench = Effect.fnUntraced(function* (options: Options = {}) {
  const base = yield* temporaryFolder
  const [folder, outside, outputs] = [join(base, "project"), join(base, "outside"), join(base, "outputs")]
  mkdirSync(folder)
  mkdirSync(outside)
  const asked: Array<PermissionRequest> = []
  const asker = Layer.succeed(PermissionAsker, {
    ask: (request) =>
      Effect.suspend(() => {
        asked.push(request)
        return options.answer?.(request) ?? Effect.succeed(Answer.Unavailable())
      })
  })
  const context = yield* Layer.build(
    ToolRegistry.layer(options.tools ?? builtins).pipe(
      Layer.provideMerge(Permission.layer),
      Layer.provide(asker),
      Layer.provide(options.store ?? approvals),
      Layer.provideMerge(
        Layer.mergeAll(
          HostTools.layer,
          options.outputs ?? ToolOutputStore.layer({ root: outputs }),
          Layer.succeed(CurrentLocation, { directory: folder })
        )
      ),
      Layer.provide(NodeContext.layer)
    )
  )
  const registry = Context.get(context, ToolRegistry.ToolRegistry)
  const plain = agentWith(options.rules ?? allowAll)
  const agent = options.bash === undefined ? plain : { ...plain, bash: options.bash }
  const settle = (name: string, input: unknown, over: Partial<ToolCall> = {}) =>
    Effect.flatMap(registry.materialize(agent), (tools) =>
      tools.settle({ name, input, call: callBy(agent, folder, over) })
    )
  /** The output of a call that has to succeed. */
  const succeed = (name: string, input: unknown, over: Partial<ToolCall> = {}) =>
    Effect.flatMap(settle(name, input, over), (settled) =>
      settled._tag === "Success"
        ? Effect.succeed(settled.output)
        : Effect.dieMessage(`${name} failed: ${settled.error.type}: ${settled.error.message}`)
    )
  /** The error of a call that has to fail. */
  const fail = (name: string, input: unknown, over: Partial<ToolCall> = {}) =>
    Effect.flatMap(settle(name, input, over), (settled) =>
      settled._tag === "Failure"
        ? Effect.succeed(settled.error)
        : Effect.dieMessage(`${name} succeeded: ${textOf(settled.output).slice(0, 500)}`)
    )
  return { agent, asked, context, fail, folder, outputs, outside, registry, settle, succeed }
})
