/** The tool `skill`: loads a skill's body and lists its files. Spec: CX-47 in specs/context.md. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { skillPermission, Skills } from "@daybook/core/context/Skills"
import { literal, verdictOf } from "@daybook/core/domain/Rule"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { Permission } from "@daybook/core/permission/Permission"
import { quotedPath } from "@daybook/core/support/TextFile"
import { define } from "@daybook/core/tool/ToolDefinition"

const SkillTool = Tool.make("skill", {
  description: "Loads a skill: instructions for work of a certain kind, by one of the names that the context lists.",
  parameters: { name: Schema.NonEmptyString.annotations({ description: "The skill's name" }) },
  success: Schema.Struct({
    name: Schema.String,
    folder: Schema.String,
    files: Schema.Array(Schema.String),
    body: Schema.String
  })
})

/** `skill`, for the skills of the current Location. */
export const makeSkill = Effect.gen(function* () {
  const skills = yield* Skills
  const permission = yield* Permission
  return define(SkillTool, {
    readOnly: true,
    permission: skillPermission,
    handler: Effect.fn("Tool.skill")(function* ({ name }, call) {
      const all = yield* skills.list
      const found = all.find((skill) => skill.name === name)
      if (found === undefined) {
        const usable = all.filter((skill) => verdictOf(call.agent.permissions, skillPermission, skill.name) !== "deny")
        const known =
          usable.length === 0 ? "there are none" : `there are: ${usable.map((skill) => skill.name).join(", ")}`
        return yield* new ToolFailure({
          type: "tool.input",
          message: `there is no skill ${JSON.stringify(name)}; ${known}`
        })
      }
      yield* permission.authorize({
        ...call,
        tool: "skill",
        permission: skillPermission,
        subject: Effect.succeed({ type: "skill", name }),
        resources: [name],
        title: `Load the skill ${name}`,
        always: [literal(name)]
      })
      const { body, folder } = found
      return { name, folder, files: yield* skills.files(found), body }
    }),
    render: ({ body, ...structured }) => {
      const beside = structured.files.map((file) => `- ${quotedPath(file)}`).join("\n")
      const note = beside === "" ? "" : `\n\nFiles of this skill, in ${quotedPath(structured.folder)}:\n${beside}`
      const head = `Skill ${structured.name}, from ${quotedPath(structured.folder)}:`
      return { structured, content: [{ type: "text", text: `${head}\n${body}${note}` }] }
    }
  })
})
