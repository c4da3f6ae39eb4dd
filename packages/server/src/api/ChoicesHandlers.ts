/** Answers requests for what sessions can be given. The host of the server knows the models. Spec: HT-504 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import type { OfferedAgent, OfferedModels, OfferedTemplate } from "@daybook/api/group/ChoicesApi"
import { NotServed } from "@daybook/api/wire/Access"
import { Agents } from "@daybook/core/agent/Agents"
import type { Agent } from "@daybook/core/domain/Agent"
import { type Template, Templates } from "@daybook/core/prompt/Templates"
import type { Roots } from "./Roots.ts"

/** Requests that ask the providers at a time: the others wait. */
const asking = 4

const agentOf = ({ bash = "process", description, mode = "all", model, name }: Agent): OfferedAgent => ({
  name,
  mode,
  bash,
  ...(description === undefined ? {} : { description }),
  ...(model === undefined ? {} : { model })
})

const templateOf = ({ description, name }: Template): OfferedTemplate => ({
  name,
  ...(description === undefined ? {} : { description })
})

/** Lists models, if the host gives them, and the agents and templates of permitted folders. */
export const layer = ({ check }: Roots, models: Effect.Effect<OfferedModels> | undefined) =>
  HttpApiBuilder.group(Api, "choices", (handlers) =>
    Effect.gen(function* () {
      const [agents, templates] = [yield* Agents, yield* Templates]
      const offered = models && Effect.unsafeMakeSemaphore(asking).withPermits(1)(models)
      const at = (directory: string | undefined) =>
        directory === undefined ? Effect.succeed(undefined) : Effect.as(check(directory), { directory })
      return handlers
        .handle("models", () => offered ?? new NotServed({ what: "models" }))
        .handle("agents", ({ urlParams }) =>
          Effect.flatMap(at(urlParams.directory), agents.list).pipe(Effect.map((found) => found.map(agentOf)))
        )
        .handle("templates", ({ urlParams }) =>
          Effect.flatMap(at(urlParams.directory), templates.list).pipe(Effect.map((found) => found.map(templateOf)))
        )
    })
  )
