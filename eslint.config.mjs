// What the linter asks of the page's scripts and their tests, beside the type checker.

import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["assets/page/**/*.js"],
    languageOptions: { globals: globals.browser },
  },
  {
    files: ["assets/page/**/*-worklet.js"],
    languageOptions: { globals: globals.audioWorklet },
  },
  {
    files: ["tests/page/**/*.js"],
    languageOptions: { globals: globals.node },
  },
  {
    files: ["pinokio.js"],
    languageOptions: { sourceType: "commonjs", globals: globals.node },
  },
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: ["error", "always"],
      "no-var": "error",
      "prefer-const": "error",
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-console": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-throw-literal": "error",
      "object-shorthand": "error",
      "no-duplicate-imports": "error",
      "no-self-compare": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "array-callback-return": "error",
      "no-promise-executor-return": "error",
      "max-lines": ["error", 300],
      "no-restricted-syntax": ["error", { selector: "Property[key.name=/^on(key|drag)/] > ArrowFunctionExpression[body.type=LogicalExpression]", message: "Its false cancels the event: use addEventListener." }],
    },
  },
];
