/** Which content a provider's error is about, by the words of real servers. */
import { assert, describe, it } from "@effect/vitest"
import { rejectedContent } from "../../packages/core/src/model/ContentRejection.ts"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"

const wordings: ReadonlyArray<readonly [status: number | undefined, text: string, kind: string, extent: string]> = [
  [
    400,
    "Failed to deserialize the JSON body: messages[4]: unknown variant `image_url`, expected `text`",
    "image",
    "all"
  ],
  [500, "image input is not supported - hint: you may need to provide the mmproj", "image", "all"],
  [404, "No endpoints found that support image input", "image", "all"],
  [400, "This model does not support image inputs.", "image", "all"],
  [400, "m is not a multimodal model", "image", "all"],
  [400, "messages.0.content.1.image.source.base64.data: Could not process image", "image", "some"],
  [400, "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum", "image", "some"],
  [400, "Image does not match the provided media type image/png", "image", "some"],
  [
    400,
    "You uploaded an unsupported image. Please make sure your image has one of the supported formats",
    "image",
    "some"
  ],
  [400, "document.source.base64.data: The PDF specified was not valid.", "pdf", "some"],
  [400, "document.source.base64.data: The PDF specified is password protected.", "pdf", "some"],
  [400, "This model does not support PDF input", "pdf", "all"],
  [400, "unsupported content[].type", "media", "all"],
  [400, "messages: Too much media: 0 document pages + 101 images > 100", "media", "many"],
  [400, "At most 1 image(s) may be provided in one request.", "media", "many"],
  [400, "Invalid base64 data", "media", "some"],
  [undefined, "Your input was flagged as potentially violating our usage policy", "text", "some"],
  [400, "Content Exists Risk", "text", "some"],
  [400, "The response was filtered due to Azure OpenAI's content management policy", "text", "some"],
  [400, "data_inspection_failed: Input data may contain inappropriate content.", "text", "some"],
  [422, "Input should be a valid string", "media", "all"],
  [400, "'messages.1.content' : value must be a string", "media", "all"],
  [500, "this model is missing data required for image input", "image", "all"],
  [400, "Invalid content type. image_url is only supported by certain models.", "image", "all"],
  [400, "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png'", "image", "some"],
  [400, "Unable to process input image.", "image", "some"],
  [400, "input new_sensitive (1026)", "text", "some"],
  [400, "messages.1.content.0: Invalid `signature` in `thinking` block", "thinking", "all"],
  [
    400,
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    "thinking",
    "all"
  ],
  [400, "messages.1.content.0.thinking: each thinking block must contain thinking", "thinking", "all"],
  [400, "The encrypted content gAAA...dQ== could not be verified.", "thinking", "all"],
  [400, "Upstream rejected the request\ninvalid_encrypted_content", "thinking", "all"],
  [404, "Item with id 'rs_0123' not found. Items are not persisted", "thinking", "all"],
  [400, "Item 'rs_0123' of type 'reasoning' was provided without its required following item.", "thinking", "all"],
  [400, "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item", "thinking", "all"],
  [400, "Function call is missing a thought_signature in functionCall parts.", "thinking", "all"],
  [400, "messages.2.assistant.reasoning_content: property is unsupported", "thinking", "all"],
  [422, "body.messages.2.assistant.reasoning_content: Extra inputs are not permitted", "thinking", "all"],
  [400, "Bad Request", "unknown", "some"]
]

describe("rejectedContent", () => {
  for (const [status, text, kind, extent] of wordings) {
    it(`MD-640: ${text} is about ${kind}, ${extent}`, () => {
      assert.deepStrictEqual<unknown>(rejectedContent(status, text), { kind, extent })
    })
  }

  for (const [status, text] of [
    [400, "Your credit balance is too low to access the API"],
    [400, "Unsupported parameter: 'max_tokens'"],
    [400, "tools.0.custom.input_schema: JSON schema is invalid"],
    [400, "The model `gpt-9` does not exist"],
    [401, "invalid image key"],
    [429, "Too many images per minute"],
    [503, "Service Unavailable"],
    [500, "Internal Server Error"],
    [undefined, "Overloaded"],
    [400, "Unrecognized request argument supplied: stream_options"],
    [400, "Unsupported parameter: 'parallel_tool_calls' is not supported with this model."],
    [400, "Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'."],
    [422, "body.stream_options: Extra inputs are not permitted"],
    [400, "reference to undefined schema at properties.target_object.anyOf.1"],
    [400, "tools.function.parameters is not a valid moonshot flavored json schema"],
    [400, "Invalid 'tools': array too long. Expected an array with maximum length 128"],
    [400, "failed to parse grammar"],
    [400, "m:latest does not support tools"],
    [400, "Please ensure that function call turn comes immediately after a user turn"],
    [400, "Unexpected role 'user' after role 'tool'"],
    [400, "Conversation roles must alternate user/assistant/user/assistant/..."],
    [400, "System message must be at the beginning."],
    [400, "messages.4.content.1: `tool_use` ids must be unique"],
    [400, "This model does not support assistant message prefill."],
    [400, "A maximum of 4 blocks with cache_control may be provided. Found 5."],
    [400, "The reasoning_content in the thinking mode must be passed back to the API."],
    [400, "Expected `thinking` or `redacted_thinking`, but found `text`."],
    [400, "User location is not supported for the API use."],
    [400, "m is not a valid model ID"],
    [400, "Failed to load model x"],
    [400, "The plain HTTP request was sent to HTTPS port"],
    [400, "Budget has been exceeded! Current cost: 10.1"]
  ] as const) {
    it(`MD-641: ${status ?? "an error part"} with "${text}" is not about content`, () => {
      assert.isUndefined(rejectedContent(status, text))
    })
  }
})

it("MD-640: an overflow is not about content, and a rejection is not retried", () => {
  const overflow = classifyError({ statusCode: 400, responseBody: '{"error":{"message":"prompt is too long"}}' })
  assert.isUndefined(overflow.content)
  const rejected = classifyError({
    statusCode: 500,
    responseBody: '{"error":{"message":"image input is not supported"}}'
  })
  assert.deepInclude(rejected, { content: { kind: "image", extent: "all" }, retryable: false })
})
