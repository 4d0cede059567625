"""What a judge by an entailment model is made of: passages to hold a claim against, and a model that scores pairs.

An entailment model reads a premise and a hypothesis and says whether the one follows from the other. It takes a few
hundred tokens, so contexts are cut into passages, and the best passage speaks for all of them.
"""
