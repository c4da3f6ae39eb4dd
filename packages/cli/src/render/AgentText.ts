/** Renders agents as lines. Pure. Spec: CL-92 in specs/cli.md. */
import type { Agent } from "@daybook/core/domain/Agent"
import { columns, oneLine } from "./Plain.ts"
import { modelName } from "./SessionLine.ts"

/** Columns: name, mode, model and description. */
export const agentTable = (agents: ReadonlyArray<Agent>): string =>
  columns(
    agents.map(({ description = "", mode = "all", model, name }) => [
      name,
      mode,
      model === undefined ? "-" : oneLine(modelName(model)),
      oneLine(description, 200)
    ])
  )
