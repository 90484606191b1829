// Bundles the unit tests, which Node cannot read as TypeScript.
export default {
  input: "tests/all.ts",
  platform: "node",
  external: /^node:/,
  output: { file: "build/unit.mjs", format: "esm" },
};
