/** Renders agents as lines. Pure. Spec: CL-92 in specs/cli.md. */
import type { Agent } from "@daybook/core/domain/Agent"
import { modelText } from "@daybook/log/domain/Values"
import { columns, oneLine } from "./Plain.ts"

/** Columns: name, mode, model, how commands run, and description. */
export const agentTable = (agents: ReadonlyArray<Agent>): string =>
  columns(
    agents.map(({ bash = "process", description = "", mode = "all", model, name }) => [
      name,
      mode,
      model === undefined ? "-" : oneLine(modelText(model)),
      bash,
      oneLine(description, 200)
    ])
  )
