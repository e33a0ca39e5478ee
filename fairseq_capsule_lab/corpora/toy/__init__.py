"""A grammar that writes English sentences, their German translations, and the links between their words.

Every English sentence has exactly one German translation. What a model has to learn:

- order: the finite verb second, last or first; participles, infinitives and prefixes last; time before the object;
- agreement: gender, case and number on determiners, adjectives (weak, mixed, strong), relative pronouns and verbs;
- one German word for several English words: compounds, diminutives, feminines, numbers, comparisons, contractions.

Read in this order: words.txt, `inflection`, `lexicon` (words by class), `grammar` (clauses), `sampler` (choice).
"""
